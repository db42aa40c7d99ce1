package samplekernel

import (
	"embed"
	"encoding/json"
	"fmt"
	"strings"
)

// The sample workspace: notebooks.json lists notebooks and documents in the
// order they are made, and each document's text is a Markdown file beside it.
// References name documents as ((doc:key "text")).
//
//go:embed sample
var sampleFiles embed.FS

type sampleNotebook struct {
	Name string      `json:"name"`
	Icon string      `json:"icon"`
	Docs []sampleDoc `json:"docs"`
}

type sampleDoc struct {
	Key  string `json:"key"`
	Path string `json:"path"` // of titles
}

// seed makes the sample workspace through the same functions requests use.
func (k *Kernel) seed() error {
	raw, err := sampleFiles.ReadFile("sample/notebooks.json")
	if err != nil {
		return err
	}
	var books []sampleNotebook
	if err := json.Unmarshal(raw, &books); err != nil {
		return err
	}
	ids := map[string]string{}
	for i, b := range books {
		n := &notebook{id: k.newID(), conf: defaultNotebookConf(), sort: map[string]int{}}
		n.conf.Name, n.conf.Icon, n.conf.Sort = b.Name, b.Icon, i+1
		k.notebooks[n.id] = n
		if err := k.mount(n); err != nil {
			return err
		}
		for _, d := range b.Docs {
			if ids["doc:"+d.Key], err = k.seedDoc(n.id, d, ids); err != nil {
				return fmt.Errorf("document %s: %w", d.Key, err)
			}
		}
	}
	k.mounts = nil
	k.flush()
	return nil
}

func (k *Kernel) seedDoc(box string, d sampleDoc, ids map[string]string) (string, error) {
	raw, err := sampleFiles.ReadFile("sample/" + d.Key + ".md")
	if err != nil {
		return "", err
	}
	md := string(raw)
	for key, id := range ids {
		md = strings.ReplaceAll(md, "(("+key+" ", "(("+id+" ")
	}
	id, err := createDocWithMd(k, args{"notebook": box, "path": d.Path, "markdown": md})
	if err != nil {
		return "", err
	}
	s, ok := id.(string)
	if !ok {
		return "", errSwallowed
	}
	return s, nil
}
