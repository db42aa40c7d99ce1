package guardtest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"siyuan-broker/connector/siyuan"
)

// Big is a home with the standard notes and many more documents in Work: groups
// at the top, and groupSize documents below each. The files are written before
// the kernel starts, which takes about a millisecond for each.
func Big(t testing.TB, groups, groupSize int) *Home {
	t.Helper()
	const folder, leaf, block = "20240301000000-tmplfol", "20240301000001-tmpldoc", "20240301000002-tmplblk"
	dir := t.TempDir()
	check(t, os.CopyFS(dir, os.DirFS(New(t).Kernel.Dir())))
	first := open(t, dir)
	first.Add(t, Doc{Box: Work, Path: "/" + folder + ".sy", Title: "Template folder"})
	first.Add(t, Doc{Box: Work, Path: "/" + folder + "/" + leaf + ".sy", Title: "Template", Text: "A word of the template.\n{: id=\"" + block + "\"}\n\n"})
	check(t, first.Client.Reader().Flush(context.Background()))
	box := filepath.Join(first.Kernel.Dir(), "data", Work)
	read := func(path string) string {
		raw, err := os.ReadFile(filepath.Join(box, path))
		check(t, err)
		return string(raw)
	}
	folderText, leafText := read(folder+".sy"), read(filepath.Join(folder, leaf+".sy"))
	dir = t.TempDir()
	check(t, os.CopyFS(dir, os.DirFS(first.Kernel.Dir())))
	box = filepath.Join(dir, "data", Work)
	check(t, os.RemoveAll(filepath.Join(dir, "temp"))) // the index is made anew
	for g := range groups {
		group := GroupID(g)
		check(t, os.WriteFile(filepath.Join(box, group+".sy"), []byte(strings.ReplaceAll(folderText, folder, group)), 0o600))
		check(t, os.MkdirAll(filepath.Join(box, group), 0o755))
		for i := range groupSize {
			id := fmt.Sprintf("20240303%06d-d%06d", g%1_000_000, i)
			text := strings.NewReplacer(leaf, id, block, fmt.Sprintf("20240304%06d-b%06d", g, i), "Template", fmt.Sprintf("Note %d of %d", i, g)).Replace(leafText)
			check(t, os.WriteFile(filepath.Join(box, group, id+".sy"), []byte(text), 0o600))
		}
	}
	h := open(t, dir)
	check(t, h.Client.Reader().Flush(context.Background()))
	_, err := h.Client.Reader().PathByID(context.Background(), siyuan.ID(GroupID(groups-1)))
	check(t, err)
	return h
}

// GroupID is the id of a group of [Big].
func GroupID(g int) string { return fmt.Sprintf("20240302%06d-groupxx", g) }
