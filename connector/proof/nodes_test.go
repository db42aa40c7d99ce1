package proof

import (
	"encoding/json"
	"fmt"
)

// snapshot keeps the state of the notes and names it for some documents, by their
// ids, or for "global".
func (k *kernelAPI) snapshot(label string, docs ...string) error {
	if _, err := k.post("repo/createSnapshot", map[string]any{"memo": label}); err != nil {
		return err
	}
	data, err := k.post("repo/getRepoSnapshots", map[string]any{"page": 1})
	if err != nil {
		return err
	}
	var page struct {
		Snapshots []struct {
			ID string `json:"id"`
		} `json:"snapshots"`
	}
	if err := json.Unmarshal(data, &page); err != nil {
		return err
	}
	for _, doc := range docs {
		if _, err := k.post("repo/tagSnapshot", map[string]any{"id": page.Snapshots[0].ID, "name": nodeTag(doc, label)}); err != nil {
			return err
		}
	}
	return nil
}

func nodeTag(doc, label string) string { return fmt.Sprintf("sisyphustimeline_%s_%s", doc, label) }

// snapshots keep every notebook of a sample kernel, in a state in which two readable
// blocks were otherwise: one had links into the hidden notebook. In a real SiYuan
// they would set the key of its repository.
func snapshots(n *notes, k *kernelAPI) error {
	if n.salt != "" {
		return nil
	}
	if _, err := k.post("repo/initRepoKeyFromPassphrase", map[string]any{"pass": "proof"}); err != nil {
		return err
	}
	write := func(code, last string) error {
		_, err := k.post("block/updateBlock", map[string]any{"id": n.id("code"), "dataType": "markdown", "data": "```go\nfunc " + code + "() {}\n```"})
		if err != nil {
			return err
		}
		_, err = k.post("block/updateBlock", map[string]any{"id": n.id("linksZ"), "dataType": "markdown", "data": n.text(last)})
		return err
	}
	if err := write("draft", "See ((${secret} 'Operation Nightfall')) and ((${secretP} \"draft\")) first."); err != nil {
		return err
	}
	if err := k.snapshot("draft", "global", n.id("alpha"), n.id("links"), n.id("entry"), n.id("secret")); err != nil {
		return err
	}
	return write("lantern", "Last words.")
}

// exampleNodes makes the node of the contract's examples on both sides, and has
// exampleBlock say something else at it.
func exampleNodes(k *kernelAPI) error {
	write := func(text string) error {
		for _, s := range []side{own, other} {
			if _, err := k.post("block/updateBlock", map[string]any{"id": s.id(exampleBlock), "dataType": "markdown", "data": text}); err != nil {
				return err
			}
		}
		return nil
	}
	if err := write("Monday was grey."); err != nil {
		return err
	}
	if _, err := k.post("repo/initRepoKeyFromPassphrase", map[string]any{"pass": "proof"}); err != nil {
		return err
	}
	if err := k.snapshot("draft", own.id(exampleAlpha), other.id(exampleAlpha)); err != nil {
		return err
	}
	return write("Monday has a colour.")
}

// nodeTelling are arguments about the nodes of a world, with each of some more:
// one after the other by each viewer, then those about other documents' nodes.
func nodeTelling(more ...string) (list []string) {
	for _, m := range more {
		for _, p := range [][2]string{
			{"${links}", "${links}"}, {"${alpha}", "${alpha}"}, {"${entry}", "${entry}"}, {"${links}", "global"}, {"${alpha}", "global"},
			{"${links}", "${secret}"}, {"${secret}", "${secret}"}, {"${secret}", "global"}, {"${nowhere}", "${nowhere}"}, {"${alpha}", "${alpha}"}, {"${links}", "${links}"},
		} {
			list = append(list, fmt.Sprintf(`{"documentId":"%s","tag":"%s"%s}`, p[0], nodeTag(p[1], "draft"), m))
		}
	}
	return list
}
