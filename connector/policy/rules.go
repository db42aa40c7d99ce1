package policy

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"siyuan-broker/contract"
	"siyuan-broker/contract/tools"
)

// Confirm is a kind of action the owner wants to agree to at home.
type Confirm string

// The kinds that can wait for the owner.
const (
	ConfirmWrite     Confirm = "write"     // every change
	ConfirmDelete    Confirm = "delete"    // deletions only
	ConfirmDangerous Confirm = "dangerous" // what the catalogue calls dangerous
)

// rules is the meaning of one policy file; a value never changes.
type rules struct {
	MaxLevel  contract.Level            `json:"max_level"`
	Notebooks map[string]contract.Level `json:"notebooks"` // by id or name, as written
	Vetoed    []string                  `json:"vetoed"`    // sorted "tool.action"
	Confirm   []Confirm                 `json:"confirm"`
	Outside   []string                  `json:"outside,omitempty"` // tools of SiYuan that reach into the internet
	Upload    []string                  `json:"upload,omitempty"`  // folders of this machine, as whole paths
	Export    []string                  `json:"export,omitempty"`
	digest    string
}

// file is the form of the policy file.
type file struct {
	MaxLevel  string            `yaml:"max_level"`
	Notebooks map[string]string `yaml:"notebooks"`
	Allow     []string          `yaml:"allow"`
	Deny      []string          `yaml:"deny"`
	Confirm   []string          `yaml:"confirm"`
	Extension []string          `yaml:"extension"`
	Upload    []string          `yaml:"upload_folders"`
	Export    []string          `yaml:"export_folders"`
}

// readOnly is the policy of a home without a file.
func readOnly() *rules { return (&rules{MaxLevel: contract.Read}).seal() }

// parse reads a policy file. Unknown keys, unknown tools and unknown levels are
// errors: a misspelt veto must not pass as no veto.
func parse(text []byte, catalogue *tools.Catalogue) (*rules, error) {
	var f file
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&f); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if err := d.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one YAML document")
	}
	r := &rules{MaxLevel: contract.Read, Notebooks: map[string]contract.Level{}}
	if f.MaxLevel != "" {
		l, err := contract.ParseLevel(f.MaxLevel)
		if err != nil {
			return nil, fmt.Errorf("max_level: %w", err)
		}
		r.MaxLevel = l
	}
	for key, name := range f.Notebooks {
		l, err := contract.ParseLevel(name)
		if err != nil {
			return nil, fmt.Errorf("notebooks: %q: %w", key, err)
		}
		if strings.TrimSpace(key) == "" {
			return nil, errors.New("notebooks: an entry has no id or name")
		}
		r.Notebooks[key] = l
	}
	var err error
	if r.Vetoed, err = vetoes(catalogue, f.Allow, f.Deny); err != nil {
		return nil, err
	}
	if r.Confirm, err = confirms(f.Confirm); err != nil {
		return nil, err
	}
	for _, name := range f.Extension {
		if !slices.Contains(outsideTools, name) {
			return nil, fmt.Errorf("extension: %q: want %s", name, strings.Join(outsideTools, ", "))
		}
		r.Outside = append(r.Outside, name)
	}
	slices.Sort(r.Outside)
	r.Outside = slices.Compact(r.Outside)
	if r.Upload, err = folders("upload_folders", f.Upload); err != nil {
		return nil, err
	}
	if r.Export, err = folders("export_folders", f.Export); err != nil {
		return nil, err
	}
	return r.seal(), nil
}

// folders accepts whole paths, in the order of the file: the first one is where
// exports go that name none. A whole disk is not one.
func folders(key string, list []string) (all []string, err error) {
	for _, path := range list {
		clean := filepath.Clean(path)
		switch {
		case !filepath.IsAbs(path):
			return nil, fmt.Errorf("%s: %q: want the whole path of a folder", key, path)
		case filepath.Dir(clean) == clean:
			return nil, fmt.Errorf("%s: %q: a whole disk cannot be given to agents; name a folder in it", key, path)
		}
		if !slices.Contains(all, clean) {
			all = append(all, clean)
		}
	}
	return all, nil
}

// outsideTools are the tools of SiYuan's own that reach into the internet from the
// home, and so need its owner's word.
var outsideTools = []string{"http_request", "web_fetch", "web_search"}

func vetoes(catalogue *tools.Catalogue, allow, deny []string) ([]string, error) {
	for key, list := range map[string][]string{"allow": allow, "deny": deny} {
		for _, name := range list {
			if !known(catalogue, name) {
				return nil, fmt.Errorf("%s: %q is neither a tool nor an action; want a form like document or document.create", key, name)
			}
		}
	}
	var vetoed []string
	for _, t := range catalogue.Tools() {
		for _, a := range t.Actions {
			named := func(list []string) bool { return slices.Contains(list, t.Name) || slices.Contains(list, a.ID()) }
			if named(deny) || allow != nil && !named(allow) {
				vetoed = append(vetoed, a.ID())
			}
		}
	}
	slices.Sort(vetoed)
	return vetoed, nil
}

func known(catalogue *tools.Catalogue, name string) bool {
	tool, action, isAction := strings.Cut(name, ".")
	if !isAction {
		_, ok := catalogue.Tool(tool)
		return ok
	}
	_, ok := catalogue.Action(tool, action)
	return ok
}

func confirms(names []string) ([]Confirm, error) {
	var kinds []Confirm
	for _, name := range names {
		k := Confirm(name)
		if k != ConfirmWrite && k != ConfirmDelete && k != ConfirmDangerous {
			return nil, fmt.Errorf("confirm: %q: want write, delete or dangerous", name)
		}
		kinds = append(kinds, k)
	}
	slices.Sort(kinds)
	return slices.Compact(kinds), nil
}

// seal computes the digest over the meaning, so that comments, order and
// spelling do not count.
func (r *rules) seal() *rules {
	b, err := json.Marshal(r)
	if err != nil { // maps of levels and slices of strings always marshal
		panic(err)
	}
	sum := sha256.Sum256(b)
	r.digest = hex.EncodeToString(sum[:])
	return r
}

// caps are the levels of the notebooks that have one of their own.
func (r *rules) caps(notebooks []contract.NotebookInfo) map[string]contract.Level {
	owners := map[string]int{}
	for _, n := range notebooks {
		owners[n.Name]++
	}
	caps := map[string]contract.Level{}
	for _, n := range notebooks {
		l, ok := r.Notebooks[n.Name]
		switch {
		case !ok:
		case owners[n.Name] > 1:
			caps[n.ID] = min(l, r.MaxLevel)
		default:
			caps[n.ID] = l
		}
	}
	for key, l := range r.Notebooks {
		if contract.IsID(key) {
			caps[key] = l
		}
	}
	return caps
}

func (r *rules) effect(notebooks []contract.NotebookInfo) contract.PolicyEffect {
	return contract.PolicyEffect{
		MaxLevel: r.MaxLevel, Notebooks: r.caps(notebooks),
		Vetoed: slices.Clone(r.Vetoed), Digest: r.digest,
	}
}
