package guard

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode"

	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
)

// The tags of the timeline's nodes among those of all snapshots:
// sisyphustimeline_global_<label> and sisyphustimeline_<document>_<label>.
const (
	nodePrefix = "sisyphustimeline_"
	globalNode = "global"
	nodeLabel  = 48 // characters
)

// Moment is a named state of a document, or of the workspace: a tagged snapshot.
type Moment struct {
	Tag     string
	Name    string    // the tag's label: the letters and digits of the name that was given
	Doc     string    // id of the document; "" for the workspace
	Created time.Time // when the tag was given; zero where SiYuan does not say

	// snapshot is for no caller to see, nor are its time and its words: they come
	// from the whole workspace, and are those of an older snapshot unless something
	// changed, be it in hidden notes.
	snapshot string
}

// nodeLabelOf is what of a name can stand in a tag: letters and digits of any
// script.
func nodeLabelOf(name string) string {
	var out []rune
	for _, r := range name {
		if (unicode.IsLetter(r) || unicode.IsDigit(r)) && len(out) < nodeLabel {
			out = append(out, r)
		}
	}
	if len(out) == 0 {
		return "snapshot"
	}
	return string(out)
}

// noSnapshots is an error of the kernel about its data repository as callers get
// it. SiYuan refuses everything there while it has no key, which is the owner's
// to make.
func noSnapshots(err error) error {
	if !errors.Is(err, siyuan.Rejected) {
		return err
	}
	return contract.Fail(contract.Unsupported, "SiYuan keeps no snapshots of this workspace: it has no data repository key.").
		WithHint("Only the home owner can make one, in SiYuan: Settings, Account and sync, Data repo key.").WithCause(err)
}

// Moments lists the nodes of a document, nil for none, and with workspace those of
// the workspace, which need the timeline switch; the newest first. A home without
// snapshots has none.
func (s *Session) Moments(ctx context.Context, d *Doc, workspace bool) ([]Moment, error) {
	if workspace {
		if err := s.holds(contract.SwitchTimeline); err != nil {
			return nil, err
		}
	}
	if d != nil {
		if err := s.use(d.nb, contract.Read); err != nil {
			return nil, err
		}
	}
	tagged, err := s.g.r.TaggedSnapshots(ctx)
	if errors.Is(err, siyuan.Rejected) {
		return nil, nil
	}
	var nodes []Moment
	for _, t := range tagged {
		of, label, found := strings.Cut(strings.TrimPrefix(t.Tag, nodePrefix), "_")
		if !found || !strings.HasPrefix(t.Tag, nodePrefix) {
			continue
		}
		n := Moment{Tag: t.Tag, Name: label, snapshot: t.ID}
		if at, err := time.ParseInLocation(time.DateTime, t.HTagged, s.Zone()); err == nil {
			n.Created = at
		}
		switch {
		case of == globalNode && workspace:
		case d != nil && of == d.ID():
			n.Doc = of
		default:
			continue
		}
		nodes = append(nodes, n)
	}
	slices.SortFunc(nodes, func(a, b Moment) int { return cmp.Or(b.Created.Compare(a.Created), strings.Compare(a.Tag, b.Tag)) })
	return nodes, err
}

// Moment finds a node by its tag among those of a document and, where the caller
// holds the timeline switch, of the workspace.
func (s *Session) Moment(ctx context.Context, tag string, d *Doc) (Moment, error) {
	nodes, err := s.Moments(ctx, d, s.grant.Has(contract.SwitchTimeline))
	if err != nil {
		return Moment{}, err
	}
	i := slices.IndexFunc(nodes, func(n Moment) bool { return n.Tag == tag })
	if i < 0 {
		return Moment{}, contract.Fail(contract.NotFound, "There is no node with the tag %q.", tag).WithHint("timeline.list_nodes lists them.")
	}
	return nodes[i], nil
}

// repoPages bounds the search for a document in the snapshots: SiYuan finds those
// below it as well.
const repoPages = 32

// versionsOf are the files of a document in the snapshots, as far as they were in
// notebooks that the caller may read. Each comes once, with the newest snapshot
// that has it.
func (s *Session) versionsOf(ctx context.Context, d Doc) ([]siyuan.RepoFile, error) {
	var files []siyuan.RepoFile
	for page := 1; ; page++ {
		got, err := s.g.r.SearchRepo(ctx, d.ID(), page)
		if err != nil {
			return nil, noSnapshots(err)
		}
		for _, f := range got.Files {
			if s.stateOf(f, d) {
				files = append(files, f)
			}
		}
		if page >= got.PageCount {
			return files, nil
		}
		if page == repoPages {
			return nil, contract.Fail(contract.TooLarge, "The snapshots have too many documents below %s to look through.", d.ID())
		}
	}
}

// stateOf reports whether a file of a snapshot is a readable state of a document.
func (s *Session) stateOf(f siyuan.RepoFile, d Doc) bool {
	box, _, _ := strings.Cut(strings.TrimPrefix(f.Path, "/"), "/")
	return docOfPath(f.Path) == d.ID() && strings.HasSuffix(f.Path, ".sy") && s.level(siyuan.ID(box)).Allows(contract.Read)
}

// stateAt is the DOM of a document as it was at a node, fit to be written.
func (s *Session) stateAt(ctx context.Context, d Doc, n Moment) (string, error) {
	f, err := s.fileAt(ctx, d, n)
	if err != nil {
		return "", err
	}
	kept, err := s.g.r.OpenRepoFile(ctx, f.FileID)
	if err != nil {
		return "", err
	}
	if kept.DisplayInText {
		return "", contract.Fail(contract.TooLarge, "Document %s is too long for SiYuan to show its past block by block.", d.ID())
	}
	return thawed(kept.Content), nil
}

// fileAt finds the file of a document in the snapshot of a node. SiYuan names only
// the newest snapshot that has a file, so another one is compared with the node's:
// what the two do not differ in is the same in both.
func (s *Session) fileAt(ctx context.Context, d Doc, n Moment) (siyuan.RepoFile, error) {
	absent := contract.Fail(contract.NotFound, "The node %q has no copy of document %s.", n.Tag, d.ID()).WithHint("It was made before the document, or while it was elsewhere.")
	files, err := s.versionsOf(ctx, d)
	if err != nil || len(files) == 0 {
		return siyuan.RepoFile{}, cmp.Or[error](err, absent)
	}
	if i := slices.IndexFunc(files, func(f siyuan.RepoFile) bool { return f.IndexID == n.snapshot }); i >= 0 {
		return files[i], nil
	}
	diff, err := s.g.r.DiffSnapshots(ctx, n.snapshot, files[0].IndexID)
	if err != nil {
		return siyuan.RepoFile{}, err
	}
	is := func(f siyuan.RepoFile) bool { return docOfPath(f.Path) == d.ID() && strings.HasSuffix(f.Path, ".sy") }
	here := slices.Concat(diff.UpdatesLeft, diff.RemovesRight) // the kernel's names: what the right one lacks it "removes"
	if i := slices.IndexFunc(here, is); i >= 0 {
		if !s.stateOf(here[i], d) {
			return siyuan.RepoFile{}, absent
		}
		return here[i], nil
	}
	if slices.ContainsFunc(slices.Concat(diff.UpdatesRight, diff.AddsLeft), is) {
		return siyuan.RepoFile{}, absent
	}
	return files[0], nil
}
