package doctor

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"siyuan-broker/cmd/internal/cli"
)

// Status is how a probe ended.
type Status string

// The ways a probe ends, from best to worst; Skip is none.
const (
	Skip Status = "skip" // there was nothing to look at, or what it builds on failed
	OK   Status = "ok"
	Warn Status = "warn" // works, but somebody should know
	Fail Status = "fail"
)

// Finding is what one probe found.
type Finding struct {
	Name   string `json:"name"`
	Status Status `json:"status"`
	Found  string `json:"found"`          // a sentence; it may have lines
	Next   string `json:"next,omitempty"` // what to do; empty where there is nothing to do
	Config bool   `json:"-"`              // a failure that only a change of configuration ends
}

// Good is a finding that all is well.
func Good(format string, args ...any) Finding {
	return Finding{Status: OK, Found: fmt.Sprintf(format, args...)}
}

// Nothing is a finding that there was nothing to look at.
func Nothing(format string, args ...any) Finding {
	return Finding{Status: Skip, Found: fmt.Sprintf(format, args...)}
}

// Bad is a failure and what to do about it.
func Bad(next, format string, args ...any) Finding {
	return Finding{Status: Fail, Found: fmt.Sprintf(format, args...), Next: next}
}

// Misconfigured is a failure that only a change of configuration ends.
func Misconfigured(next, format string, args ...any) Finding {
	f := Bad(next, format, args...)
	f.Config = true
	return f
}

// Doubtful is something that works but that somebody should know.
func Doubtful(next, format string, args ...any) Finding {
	f := Bad(next, format, args...)
	f.Status = Warn
	return f
}

// Probe looks at one thing.
type Probe struct {
	Name   string
	Needs  []string      // probes that must have ended well before, else this one is skipped
	Within time.Duration // bounds it; zero: 15 s
	Run    func(ctx context.Context) Finding
}

// patience bounds a probe that does not say otherwise.
const patience = 15 * time.Second

// Run runs the probes one after the other, telling each finding when it is
// there.
func Run(ctx context.Context, probes []Probe, tell func(Finding)) []Finding {
	var all []Finding
	ended := map[string]Status{}
	for _, p := range probes {
		f := Finding{Status: Skip}
		for _, need := range p.Needs {
			if s := ended[need]; s != OK && s != Warn {
				f.Found = "needs: " + need
				break
			}
		}
		if f.Found == "" {
			one, cancel := context.WithTimeout(ctx, cmp.Or(p.Within, patience))
			f = p.Run(one)
			cancel()
		}
		f.Name = p.Name
		ended[p.Name] = f.Status
		all = append(all, f)
		tell(f)
	}
	return all
}

// Examine runs the probes and prints what they find: for people line by line as
// it comes, or one JSON document. Its error has the exit code of the worst
// finding: 78 where the configuration has to change, else 1.
func Examine(ctx context.Context, out io.Writer, asJSON bool, probes []Probe) error {
	var printErr error
	tell := func(f Finding) {
		if !asJSON && printErr == nil {
			_, printErr = io.WriteString(out, f.text())
		}
	}
	all := Run(ctx, probes, tell)
	if asJSON {
		printErr = cli.PrintJSON(out, summary{worst(all), all})
	}
	if printErr != nil {
		return printErr
	}
	return verdict(all)
}

type summary struct {
	Status   Status    `json:"status"` // of the worst finding
	Findings []Finding `json:"findings"`
}

func worst(all []Finding) Status {
	rank := map[Status]int{Skip: 0, OK: 0, Warn: 1, Fail: 2}
	w := OK
	for _, f := range all {
		if rank[f.Status] > rank[w] {
			w = f.Status
		}
	}
	return w
}

func verdict(all []Finding) error {
	var failed []string
	code := cli.ExitFailed
	for _, f := range all {
		if f.Status != Fail {
			continue
		}
		failed = append(failed, f.Name)
		if f.Config {
			code = cli.ExitConfig
		}
	}
	if len(failed) == 0 {
		return nil
	}
	return cli.Fail(code, fmt.Errorf("not in order: %s", strings.Join(failed, ", ")))
}

// text is a finding for people: status, name, what was found and what to do.
func (f Finding) text() string {
	const indent = "      " + "                    "
	var b strings.Builder
	fmt.Fprintf(&b, "%-4s  %-18s  %s\n", f.Status, f.Name, strings.ReplaceAll(f.Found, "\n", "\n"+indent))
	if f.Next != "" {
		fmt.Fprintf(&b, "%s→ %s\n", indent, strings.ReplaceAll(f.Next, "\n", "\n"+indent+"  "))
	}
	return b.String()
}
