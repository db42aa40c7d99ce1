package approvals

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"siyuan-broker/contract"
)

// owner is a folder with a clock that a test turns.
type owner struct {
	*Folder
	data string
	time time.Time
}

func newOwner(t *testing.T) *owner {
	t.Helper()
	o := &owner{data: filepath.Join(t.TempDir(), "[data]"), time: time.Unix(1000, 0)}
	o.Folder = In(o.data, func() time.Time { return o.time })
	return o
}

func aCall() Call {
	return Call{Principal: "t/i/m/a", RequestID: "r", Tool: "document", Action: "remove", Arguments: "d1"}
}

func (o *owner) asked(t *testing.T, c Call) Question {
	t.Helper()
	q, err := o.Ask(c, "Claude", contract.Preview{})
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func (o *owner) decided(t *testing.T, id string, a Answer) {
	t.Helper()
	if _, err := o.Decide(id, a); err != nil {
		t.Fatal(err)
	}
}

func (o *owner) stands(t *testing.T, c Call, want Standing) {
	t.Helper()
	if got, _, err := o.Claim(c); err != nil || got != want {
		t.Errorf("%+v stands %q, %v; want %q", c, got, err, want)
	}
}

func TestAYesIsGoodOnce(t *testing.T) {
	t.Parallel()
	o := newOwner(t)
	o.stands(t, aCall(), Unasked)
	q := o.asked(t, aCall())
	o.stands(t, aCall(), Asked)
	o.decided(t, q.ID, Approved)
	o.stands(t, aCall(), Granted)
	o.stands(t, aCall(), Unasked)
	left, err := os.ReadDir(filepath.Join(o.data, "approvals"))
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestANoHoldsUntilItExpires(t *testing.T) {
	t.Parallel()
	o := newOwner(t)
	q := o.asked(t, aCall())
	o.decided(t, q.ID, Approved)
	o.decided(t, q.ID, Declined) // not used yet
	o.stands(t, aCall(), Refused)
	o.stands(t, aCall(), Refused)
	if _, err := o.Decide(q.ID, Approved); contract.CodeOf(err) != contract.ConfirmationDeclined {
		t.Errorf("a no became a yes: %v", err)
	}
	o.stands(t, aCall(), Refused)
}

func TestAYesIsForOneCall(t *testing.T) {
	t.Parallel()
	o := newOwner(t)
	o.decided(t, o.asked(t, aCall()).ID, Approved)
	for name, c := range map[string]Call{
		"arguments": {"t/i/m/a", "r", "document", "remove", "d2"},
		"action":    {"t/i/m/a", "r", "document", "move", "d1"},
		"tool":      {"t/i/m/a", "r", "notebook", "remove", "d1"},
	} {
		if got, _, err := o.Claim(c); got != Other || err != nil {
			t.Errorf("another %s: %s, %v", name, got, err)
		}
	}
	for name, c := range map[string]Call{
		"agent":   {"t/i/m/b", "r", "document", "remove", "d1"},
		"tenant":  {"u/i/m/a", "r", "document", "remove", "d1"},
		"request": {"t/i/m/a", "s", "document", "remove", "d1"},
	} {
		if got, _, err := o.Claim(c); got != Unasked || err != nil {
			t.Errorf("another %s: %s, %v", name, got, err)
		}
	}
	o.stands(t, aCall(), Granted)
}

func TestQuestionsExpireAnsweredOrNot(t *testing.T) {
	t.Parallel()
	for _, a := range []Answer{Waiting, Approved, Declined} {
		o := newOwner(t)
		q := o.asked(t, aCall())
		if a != Waiting {
			o.decided(t, q.ID, a)
		}
		o.time = o.time.Add(10*time.Minute - 1)
		if all, err := o.List(); len(all) != 1 || err != nil {
			t.Errorf("%q: a moment before the end %d are listed, %v", a, len(all), err)
		}
		o.time = o.time.Add(1)
		if all, err := o.List(); len(all) != 0 || err != nil {
			t.Errorf("%q: after the end %d are listed, %v", a, len(all), err)
		}
		if _, err := o.Decide(q.ID, Approved); contract.CodeOf(err) != contract.NotFound {
			t.Errorf("%q: approved after the end: %v", a, err)
		}
		o.stands(t, aCall(), Lapsed)
		again := o.asked(t, aCall())
		if again.ID == q.ID {
			t.Error("an old answer fits the new question")
		}
		o.stands(t, aCall(), Asked)
	}
}

func TestWhatWaitsIsBounded(t *testing.T) {
	t.Parallel()
	o := newOwner(t)
	ask := func(agent, request int) error {
		_, err := o.Ask(Call{Principal: fmt.Sprint(agent), RequestID: fmt.Sprint(request)}, "", contract.Preview{})
		return err
	}
	for agent := range 4 {
		for i := range 16 {
			if err := ask(agent, i); err != nil {
				t.Fatal(err)
			}
		}
		if err := ask(agent, 16); !errors.Is(err, ErrTooMany) {
			t.Errorf("the 17th of an agent: %v", err)
		}
	}
	if err := ask(4, 0); !errors.Is(err, ErrTooMany) {
		t.Errorf("the 65th: %v", err)
	}
	o.time = o.time.Add(Life)
	if err := ask(4, 0); err != nil {
		t.Errorf("after all have expired: %v", err)
	}
	if files, err := os.ReadDir(filepath.Join(o.data, "approvals")); len(files) != 1 || err != nil {
		t.Errorf("%d files, %v; want the new one", len(files), err)
	}
}

func TestAnswersComeFromAnotherProgram(t *testing.T) {
	t.Parallel()
	o := newOwner(t)
	q := o.asked(t, aCall())
	command := In(o.data, o.now)
	if all, err := command.List(); err != nil || len(all) != 1 || all[0].ID != q.ID || all[0].Agent != "Claude" {
		t.Fatalf("%+v, %v", all, err)
	}
	if _, err := command.Decide(q.ID[:10], Approved); err != nil {
		t.Fatal(err)
	}
	o.stands(t, aCall(), Granted)
}

func TestIdsThatNameNothingOrTooMuchAreRefused(t *testing.T) {
	t.Parallel()
	o := newOwner(t)
	first := o.asked(t, aCall())
	o.asked(t, Call{Principal: "x"})
	for id, want := range map[string]contract.Code{"": contract.NotFound, "../" + first.ID: contract.NotFound, "apr_": contract.Ambiguous} {
		if _, err := o.Decide(id, Approved); contract.CodeOf(err) != want {
			t.Errorf("%q: %v, want %s", id, err, want)
		}
	}
}

func TestADamagedQuestionStopsEverythingAndIsNamed(t *testing.T) {
	t.Parallel()
	o := newOwner(t)
	q := o.asked(t, aCall())
	o.decided(t, q.ID, Approved)
	name := filepath.Join(o.data, "approvals", q.ID+".json")
	if err := os.WriteFile(name, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, _, err := o.Claim(aCall()); err == nil || got != "" || !strings.Contains(err.Error(), name) {
		t.Errorf("%q, %v", got, err)
	}
}
