package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"gopkg.in/yaml.v3"

	"siyuan-broker/contract"
	"siyuan-broker/contract/disclosure"
	"siyuan-broker/tenants"
)

// workflow is how an agent follows one prompt.
type workflow struct {
	Before []taskCall     `yaml:"before"`
	Steps  []workflowStep `yaml:"steps"`
	After  []taskCall     `yaml:"after"`
}

// workflowStep is a call that the prompt shows; its arguments are the prompt's.
type workflowStep struct {
	taskCall `yaml:",inline"`
	With     map[string]string `yaml:"with"` // by placeholder
}

// TestPromptsAreWorkflowsThatSucceed follows every prompt call by call, with the
// arguments it shows, through agent, broker, tunnel, connector and kernel.
func TestPromptsAreWorkflowsThatSucceed(t *testing.T) {
	t.Parallel()
	flows, s := workflows(t)
	listed, err := s.ListPrompts(t.Context(), nil)
	must(t, err)
	if len(listed.Prompts) != len(flows) {
		t.Errorf("%d prompts, %d of them are followed here: %v", len(listed.Prompts), len(flows), slices.Sorted(maps.Keys(flows)))
	}
	for _, p := range listed.Prompts {
		flows[p.Name].run(t, s, p.Name)
	}
}

// The unused files are the one answer of that prompt that the sample kernel works
// out in a way of its own.
func TestLiveTheHealthCheckFindsWhatNothingLinksTo(t *testing.T) {
	if liveFront(t) == nil {
		t.Skip("set SIYUAN_API_URL and SIYUAN_TOKEN")
	}
	flows, s := workflows(t)
	flows["health_check"].run(t, s, "health_check")
}

// workflows are all of them, and an agent that may do what they say.
func workflows(t *testing.T) (map[string]workflow, *mcp.ClientSession) {
	t.Helper()
	raw, err := os.ReadFile("testdata/workflows.yaml")
	must(t, err)
	flows := map[string]workflow{}
	must(t, yaml.Unmarshal(raw, &flows))
	w := newWorld(t)
	x := w.tenant("Ada", tenants.NewID())
	x.allowAll()
	x.change(func(tx tenants.Tx) error { return tx.SetSwitch(t.Context(), x.instance, contract.SwitchAssets, true) })
	x.home(liveFront(t))
	_, token := x.agentToken(tenants.NewID(), contract.ReadWriteDelete)
	return flows, w.agent(token, "")
}

// run follows a prompt in a notebook of its own.
func (f workflow) run(t *testing.T, s *mcp.ClientSession, prompt string) {
	t.Helper()
	// The day before, so that midnight changes nothing.
	known := map[string]string{"yesterday": time.Now().Add(-24 * time.Hour).Format("20060102")}
	known["nb"] = into[struct{ Notebook struct{ ID string } }](t, s, "notebook", map[string]any{"action": "create", "name": "For " + prompt}).Notebook.ID
	if err := f.follow(t, s, prompt, known); err != nil {
		t.Errorf("%s: %v", prompt, err)
	}
	call(context.WithoutCancel(t.Context()), s, "notebook", map[string]any{"action": "remove", "notebook": known["nb"]})
}

func (f workflow) follow(t *testing.T, s *mcp.ClientSession, prompt string, known map[string]string) error {
	got, err := s.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: prompt})
	if err != nil {
		return err
	}
	var shown []disclosure.Mention
	for _, m := range disclosure.Mentions(got.Messages[0].Content.(*mcp.TextContent).Text) {
		if m.Args != nil {
			shown = append(shown, m)
		}
	}
	if len(shown) != len(f.Steps) {
		return fmt.Errorf("the prompt shows %d calls, %d are followed", len(shown), len(f.Steps))
	}
	for _, c := range f.Before {
		if err := c.run(t, s, known); err != nil {
			return fmt.Errorf("before, %s: %w", c.Call, err)
		}
	}
	for i, step := range f.Steps {
		if id := shown[i].Tool + "." + shown[i].Action; id != step.Call {
			return fmt.Errorf("call %d is %s, want %s", i+1, id, step.Call)
		}
		c := step.taskCall
		if c.Args, err = filled(shown[i].Args, step.With); err != nil {
			return fmt.Errorf("call %d, %s: %w", i+1, c.Call, err)
		}
		if err := c.run(t, s, known); err != nil {
			return fmt.Errorf("call %d, %s: %w", i+1, c.Call, err)
		}
	}
	for _, c := range f.After {
		if err := c.run(t, s, known); err != nil {
			return fmt.Errorf("after, %s: %w", c.Call, err)
		}
	}
	return nil
}

var placeholder = regexp.MustCompile(`<([a-zA-Z][a-zA-Z ]*)>`)

// filled are the arguments a prompt shows with values for all its placeholders.
func filled(raw json.RawMessage, with map[string]string) (map[string]any, error) {
	used := map[string]bool{}
	text := placeholder.ReplaceAllStringFunc(string(raw), func(m string) string {
		name := strings.Trim(m, "<>")
		used[name] = true
		value, err := json.Marshal(with[name])
		if err != nil || with[name] == "" {
			return m
		}
		return string(value[1 : len(value)-1])
	})
	if missing := placeholder.FindString(text); missing != "" {
		return nil, fmt.Errorf("no value for %s", missing)
	}
	for name := range with {
		if !used[name] {
			return nil, fmt.Errorf("the prompt has no <%s>", name)
		}
	}
	var args map[string]any
	err := json.Unmarshal([]byte(text), &args)
	return args, err
}
