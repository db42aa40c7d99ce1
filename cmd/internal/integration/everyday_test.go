package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"gopkg.in/yaml.v3"

	"siyuan-broker/contract"
	"siyuan-broker/contract/tools"
	"siyuan-broker/tenants"
)

// task is one entry of testdata/everyday.yaml.
type task struct {
	Ask   string     `yaml:"ask"`
	Calls []taskCall `yaml:"calls"`
}

type taskCall struct {
	Call  string            `yaml:"call"`
	Args  map[string]any    `yaml:"args"`
	Want  []string          `yaml:"want"`
	Not   []string          `yaml:"not"`
	Fails string            `yaml:"fails"`
	Save  map[string]string `yaml:"save"`
}

func everydayTasks(t *testing.T) []task {
	t.Helper()
	b, err := os.ReadFile("testdata/everyday.yaml")
	must(t, err)
	var all []task
	must(t, yaml.Unmarshal(b, &all))
	return all
}

// TestEverydayTasksSucceedAtTheFirstTry runs what people ask for through agent,
// broker, tunnel and connector. A call that fails at first is a fault of its
// description.
func TestEverydayTasksSucceedAtTheFirstTry(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	x := w.tenant("Ada", tenants.NewID())
	x.allowAll()
	x.home(liveFront(t))
	_, token := x.agentToken(tenants.NewID(), contract.ReadWriteDelete)
	s := w.agent(token, "")
	known := map[string]string{"nb": into[struct{ Notebook struct{ ID string } }](t, s, "notebook", map[string]any{"action": "create", "name": "Everyday"}).Notebook.ID}
	defer call(context.WithoutCancel(t.Context()), s, "notebook", map[string]any{"action": "remove", "notebook": known["nb"]})
	for _, task := range everydayTasks(t) {
		for _, c := range task.Calls {
			if err := c.run(t, s, known); err != nil {
				t.Errorf("%s\n  %s: %v", task.Ask, c.Call, err)
				break
			}
		}
	}
}

// allowAll switches every action on and asks nobody about the dangerous ones.
func (x *tenant) allowAll() {
	x.allow()
	x.change(func(tx tenants.Tx) error {
		for _, tool := range tools.New().Tools() {
			for _, a := range tool.Actions {
				if err := tx.SetToggle(x.w.t.Context(), x.instance, tenants.Toggle{Tool: tool.Name, Action: a.Name, Enabled: true}); err != nil {
					return err
				}
				if !a.Dangerous {
					continue
				}
				if err := tx.SetConsent(x.w.t.Context(), x.instance, tenants.Consent{Tool: tool.Name, Action: a.Name, Mode: tenants.ConsentAllow}); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// liveFront stands before the kernel of the test with the SiYuan that the
// environment names, if it names one.
func liveFront(t *testing.T) func(http.Handler) http.Handler {
	t.Helper()
	address, token := os.Getenv("SIYUAN_API_URL"), os.Getenv("SIYUAN_TOKEN")
	if address == "" || token == "" {
		return nil
	}
	target, err := url.Parse(address)
	must(t, err)
	return func(http.Handler) http.Handler {
		return &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Header.Set("Authorization", "Token "+token)
		}}
	}
}

func TestThereAreTasksForEveryDay(t *testing.T) {
	t.Parallel()
	all, chinese, used := everydayTasks(t), 0, map[string]bool{}
	for _, task := range all {
		if regexp.MustCompile(`\p{Han}`).MatchString(task.Ask) {
			chinese++
		}
		for _, c := range task.Calls {
			used[c.Call] = true
			tool, name, _ := strings.Cut(c.Call, ".")
			if _, ok := tools.New().Action(tool, name); !ok {
				t.Errorf("%s: there is no action %s", task.Ask, c.Call)
			}
		}
	}
	if len(all) < 52 || chinese < 7 || len(used) < 43 {
		t.Errorf("%d tasks, %d of them in Chinese, with %d actions", len(all), chinese, len(used))
	}
}

var taskName = regexp.MustCompile(`\$\{(\w+)\}`)

func (c taskCall) run(t *testing.T, s *mcp.ClientSession, known map[string]string) error {
	fill := func(text string) string {
		return taskName.ReplaceAllStringFunc(text, func(m string) string { return known[m[2:len(m)-1]] })
	}
	raw, err := json.Marshal(c.Args)
	if err != nil {
		return err
	}
	args := map[string]any{}
	if c.Args != nil {
		if err := json.Unmarshal([]byte(fill(string(raw))), &args); err != nil {
			return err
		}
	}
	tool, action, _ := strings.Cut(c.Call, ".")
	args["action"] = action
	a := call(t.Context(), s, tool, args)
	if a.err != nil || string(a.code) != c.Fails {
		return fmt.Errorf("%v %s", a.err, a.body)
	}
	if c.Fails != "" {
		return nil
	}
	for _, want := range c.Want {
		if !strings.Contains(a.body, fill(want)) {
			return fmt.Errorf("%s does not hold %q", a.body, fill(want))
		}
	}
	for _, not := range c.Not {
		if strings.Contains(a.body, fill(not)) {
			return fmt.Errorf("%s holds %q", a.body, fill(not))
		}
	}
	var v any
	if err := json.Unmarshal([]byte(a.body), &v); err != nil {
		return err
	}
	for name, path := range c.Save {
		known[name] = valueAt(v, path)
		if known[name] == "" {
			return fmt.Errorf("%s has no %s", a.body, path)
		}
	}
	return nil
}

// valueAt is the text at a path such as data.0.id.
func valueAt(v any, path string) string {
	for step := range strings.SplitSeq(path, ".") {
		switch at := v.(type) {
		case map[string]any:
			v = at[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i >= len(at) {
				return ""
			}
			v = at[i]
		}
	}
	text, _ := v.(string)
	return text
}
