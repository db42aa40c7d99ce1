package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"siyuan-broker/cmd/internal/cli"
)

func probe(name string, f Finding, needs ...string) Probe {
	return Probe{Name: name, Needs: needs, Run: func(context.Context) Finding { return f }}
}

func TestTheExitCodeIsThatOfTheWorstFinding(t *testing.T) {
	good, warn, skip := Good("fine"), Doubtful("look", "odd"), Nothing("none")
	bad, config := Bad("do", "broken"), Misconfigured("set", "wrong")
	for name, c := range map[string]struct {
		findings []Finding
		want     int
	}{
		"nothing at all":           {nil, 0},
		"all well":                 {[]Finding{good, skip}, 0},
		"a warning":                {[]Finding{good, warn}, 0},
		"a failure":                {[]Finding{bad, good, warn}, 1},
		"a wrong setting":          {[]Finding{config, good}, 78},
		"a wrong setting and more": {[]Finding{config, bad}, 78},
	} {
		var probes []Probe
		for _, f := range c.findings {
			probes = append(probes, probe("p", f))
		}
		if got := cli.CodeOf(Examine(t.Context(), &bytes.Buffer{}, true, probes)); got != c.want {
			t.Errorf("%s: exit code %d, want %d", name, got, c.want)
		}
	}
}

func TestWhatBuildsOnAFailureIsSkippedAndSaysWhy(t *testing.T) {
	var told []string
	all := Run(t.Context(), []Probe{
		probe("dns", Bad("", "no such host")),
		probe("tcp", Good("open"), "dns"),
		probe("tls", Good("valid"), "tcp"),
		probe("disk", Good("free")),
	}, func(f Finding) { told = append(told, f.Name) })
	want := []Finding{
		{Name: "dns", Status: Fail, Found: "no such host"},
		{Name: "tcp", Status: Skip, Found: "needs: dns"},
		{Name: "tls", Status: Skip, Found: "needs: tcp"},
		{Name: "disk", Status: OK, Found: "free"},
	}
	for i, w := range want {
		if all[i] != w || told[i] != w.Name {
			t.Errorf("got %+v, told %s; want %+v", all[i], told[i], w)
		}
	}
}

func TestPeopleReadStatusNameFindingAndWhatToDo(t *testing.T) {
	var out bytes.Buffer
	err := Examine(t.Context(), &out, false, []Probe{probe("siyuan", Bad("start it", "no answer:\n127.0.0.1 refused"))})
	want := "fail  siyuan              no answer:\n" +
		"                          127.0.0.1 refused\n" +
		"                          → start it\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", &out, want)
	}
	if err == nil || !strings.Contains(err.Error(), "siyuan") {
		t.Errorf("the error does not name the probe: %v", err)
	}
}

func TestProgramsReadOneDocument(t *testing.T) {
	var out bytes.Buffer
	if err := Examine(t.Context(), &out, true, []Probe{probe("a", Good("1 < 2")), probe("b", Doubtful("look", "odd"))}); err != nil {
		t.Error(err)
	}
	var got struct {
		Status   string
		Findings []map[string]string
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got.Status != "warn" || len(got.Findings) != 2 || got.Findings[0]["found"] != "1 < 2" || got.Findings[1]["next"] != "look" {
		t.Errorf("got %+v", got)
	}
}

func TestAProbeThatHangsIsCutOff(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	all := Run(ctx, []Probe{{Name: "slow", Run: func(ctx context.Context) Finding {
		<-ctx.Done()
		return Bad("", "%v", ctx.Err())
	}}}, func(Finding) {})
	if !strings.Contains(all[0].Found, context.Canceled.Error()) {
		t.Errorf("got %+v", all[0])
	}
}

func TestAProbeHasTheTimeItAsksFor(t *testing.T) {
	var left []time.Duration
	ask := func(ctx context.Context) Finding {
		until, _ := ctx.Deadline()
		left = append(left, time.Until(until))
		return Good("")
	}
	Run(t.Context(), []Probe{{Name: "usual", Run: ask}, {Name: "long", Within: time.Hour, Run: ask}}, func(Finding) {})
	if left[0] > 15*time.Second || left[1] < 59*time.Minute {
		t.Errorf("probes had %v", left)
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("pipe closed") }

func TestOutputThatCannotBeWrittenIsAnError(t *testing.T) {
	for _, asJSON := range []bool{true, false} {
		if err := Examine(t.Context(), brokenWriter{}, asJSON, []Probe{probe("a", Good("x"))}); err == nil {
			t.Errorf("json %v: no error", asJSON)
		}
	}
}
