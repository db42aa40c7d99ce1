package guard_test

import (
	"context"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/guard/guardtest"
	"siyuan-broker/connector/siyuan/samplekernel"
	"siyuan-broker/contract"
)

// abcSum is the SHA-256 of "abc" (FIPS 180-4, appendix B.1).
const abcSum = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

const putFile = "/api/file/putFile"

func doc(t *testing.T, s *guard.Session, id string) *guard.Doc {
	t.Helper()
	d, err := s.Doc(context.Background(), id, contract.Read)
	if err != nil {
		t.Fatal(err)
	}
	return &d
}

// stored stores "abc" for Alpha.
func stored(t *testing.T, s *guard.Session, name string) string {
	t.Helper()
	got, err := s.StoreFile(context.Background(), intent(), doc(t, s, guardtest.Alpha), guard.Upload{Name: name, Size: 3}, strings.NewReader("abc"))
	if err != nil {
		t.Fatal(err)
	}
	return got.Path
}

func TestAFileIsStoredUnderANewNameAndReadBack(t *testing.T) {
	t.Parallel()
	h := guardtest.New(t)
	s := h.Writer(t)
	form := regexp.MustCompile(`^assets/abc-[0-9]{14}-[0-9a-z]{7}\.txt$`)
	seen := map[string]bool{}
	for range 3 { // in the same second
		got, err := s.StoreFile(context.Background(), intent(), doc(t, s, guardtest.Alpha), guard.Upload{Name: "../../abc.txt", Size: 3, Sum: abcSum}, strings.NewReader("abc"))
		if err != nil || !form.MatchString(got.Path) || got.Size != 3 || got.Sum != abcSum || seen[got.Path] {
			t.Fatalf("%+v, %v", got, err)
		}
		seen[got.Path] = true
		f, err := h.Client.Reader().GetFile(context.Background(), "/data/"+got.Path)
		if err != nil || string(f.Data) != "abc" {
			t.Errorf("%q, %v", f.Data, err)
		}
	}
	if s.Touched() != guardtest.Work {
		t.Errorf("touched %q", s.Touched())
	}
}

func TestAFileThatIsNotWhatWasAnnouncedLeavesNothing(t *testing.T) {
	t.Parallel()
	h := guardtest.New(t)
	s := h.Writer(t)
	before := files(t, h)
	for name, c := range map[string]struct {
		size int64
		sum  string
		body io.Reader
		want contract.Code
	}{
		"short":      {4, "", strings.NewReader("abc"), contract.TransferInterrupted},
		"long":       {2, "", strings.NewReader("abc"), contract.TransferInterrupted},
		"broken":     {4, "", io.MultiReader(strings.NewReader("abc"), iotest.ErrReader(errors.New("gone"))), contract.TransferInterrupted},
		"broken end": {3, "", io.MultiReader(strings.NewReader("abc"), iotest.ErrReader(errors.New("gone"))), contract.TransferInterrupted},
		"other sum":  {3, abcSum, strings.NewReader("abd"), contract.InvalidValue},
	} {
		steps := &steps{}
		in := intent()
		in.Entry = steps
		_, err := s.StoreFile(context.Background(), in, doc(t, s, guardtest.Alpha), guard.Upload{Name: "x.txt", Size: c.size, Sum: c.sum}, c.body)
		if contract.CodeOf(err) != c.want {
			t.Errorf("%s: %v", name, err)
		}
		if len(steps.list) != 0 {
			t.Errorf("%s: a step is remembered, so the request could not be sent again: %+v", name, steps.list)
		}
	}
	if now := files(t, h); now != before {
		t.Errorf("files are %s, were %s", now, before)
	}
}

// steps remembers what a write would have on disk.
type steps struct{ list []guard.Step }

func (s *steps) Step(_ context.Context, st guard.Step) error {
	s.list = append(s.list, st)
	return nil
}

func (s *steps) Drop(context.Context) error {
	s.list = s.list[:len(s.list)-1]
	return nil
}

func files(t *testing.T, h *guardtest.Home) string {
	t.Helper()
	entries, err := h.Client.Reader().ReadDir(context.Background(), "/data/assets")
	if err != nil {
		return err.Error()
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name)
	}
	return strings.Join(names, " ")
}

func TestWhatBecameOfAFileIsFoundOut(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault samplekernel.FaultKind
		sum   string
		code  contract.Code
		want  guard.Verdict
	}{
		"lost before":       {samplekernel.FaultDrop, abcSum, contract.OutcomeUnknown, guard.NotDone},
		"lost after":        {samplekernel.FaultDropAfter, abcSum, contract.OutcomeUnknown, guard.Done},
		"lost, size alone":  {samplekernel.FaultDropAfter, "", contract.OutcomeUnknown, guard.Done},
		"claimed, not done": {samplekernel.FaultNoEffect, abcSum, contract.WriteNotPersisted, guard.NotDone},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := guardtest.New(t)
			s := h.Writer(t)
			in, entry := intent(), &steps{}
			in.Entry = entry
			h.Kernel.Faults().Set(putFile, samplekernel.Fault{Kind: c.fault})
			_, err := s.StoreFile(context.Background(), in, doc(t, s, guardtest.Alpha), guard.Upload{Name: "a.txt", Size: 3, Sum: c.sum}, strings.NewReader("abc"))
			h.Kernel.Faults().Clear()
			if code := contract.CodeOf(guard.Public(err)); code != c.code || len(entry.list) != 1 {
				t.Fatalf("%v with steps %+v", err, entry.list)
			}
			if v, err := h.Guard.Decide(context.Background(), entry.list[0]); err != nil || v != c.want {
				t.Errorf("verdict %v, %v", v, err)
			}
		})
	}
}

// A file that is there with other bytes was written by halves, or by somebody
// else: nobody may say that the upload succeeded, or that it can be repeated.
func TestHalfAFileIsNoSuccess(t *testing.T) {
	t.Parallel()
	h := guardtest.New(t)
	s := h.Writer(t)
	in, entry := intent(), &steps{}
	in.Entry = entry
	h.Kernel.Faults().Set(putFile, samplekernel.Fault{Kind: samplekernel.FaultDrop})
	_, _ = s.StoreFile(context.Background(), in, doc(t, s, guardtest.Alpha), guard.Upload{Name: "a.txt", Size: 3}, strings.NewReader("abc"))
	h.Kernel.Faults().Clear()
	if err := h.Client.Writer().PutFile(context.Background(), "/data/"+entry.list[0].ID, []byte("ab"), time.UnixMilli(0)); err != nil {
		t.Fatal(err)
	}
	if v, err := h.Guard.Decide(context.Background(), entry.list[0]); err != nil || v != guard.Unclear {
		t.Errorf("verdict %v, %v", v, err)
	}
}

func TestStoringNeedsTheDocumentOrTheSwitch(t *testing.T) {
	t.Parallel()
	h := guardtest.New(t)
	s := h.Writer(t)
	u := guard.Upload{Name: "a.txt", Size: 3}
	before := files(t, h)
	if _, err := s.StoreFile(context.Background(), intent(), doc(t, s, guardtest.Entry), u, strings.NewReader("abc")); contract.CodeOf(err) != contract.PermissionDenied {
		t.Errorf("for a document that may only be read: %v", err)
	}
	if _, err := s.StoreFile(context.Background(), intent(), nil, u, strings.NewReader("abc")); contract.CodeOf(err) != contract.PermissionDenied {
		t.Errorf("for nobody, without the switch: %v", err)
	}
	if now := files(t, h); now != before {
		t.Error("something was stored")
	}
	w, err := h.Guard.Workspace(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	grant := guardtest.Grant(map[string]contract.Level{guardtest.Work: contract.Read})
	grant.Switches = []contract.Switch{contract.SwitchAssets}
	if _, err := h.Guard.Session(w, grant).StoreFile(context.Background(), intent(), nil, u, strings.NewReader("abc")); err != nil {
		t.Errorf("with the switch: %v", err)
	}
}

// No note links to a new file, so it would look like one that does not exist.
func TestAnAgentLinksToWhatItStoredAndToNothingElse(t *testing.T) {
	t.Parallel()
	h := guardtest.New(t)
	s := h.Writer(t)
	own := stored(t, s, "Plan für Mai.pdf")
	if _, err := appendTo(t, h.Writer(t), guardtest.Projects, "[plan]("+own+")"); err != nil {
		t.Errorf("its own: %v", err)
	}
	again := stored(t, s, "b.pdf")
	w, err := h.Guard.Workspace(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	grant := guardtest.Grant(map[string]contract.Level{guardtest.Work: contract.ReadWrite})
	grant.Agent.ID = "other"
	other := h.Guard.Session(w, grant)
	for name, path := range map[string]string{"another agent's": again, "a made up one": "assets/b-20240101000000-aaaaaaa.pdf"} {
		if _, err := appendTo(t, other, guardtest.Projects, "[b]("+path+")"); contract.CodeOf(err) != contract.HiddenReference {
			t.Errorf("%s: %v", name, err)
		}
	}
	renamed := strings.Replace(again, "assets/b-", "assets/c-", 1)
	if _, err := appendTo(t, h.Writer(t), guardtest.Projects, "[b]("+renamed+")"); contract.CodeOf(err) != contract.HiddenReference {
		t.Errorf("its mark under another name: %v", err)
	}
}
