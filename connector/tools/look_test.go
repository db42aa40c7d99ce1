package tools_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"siyuan-broker/connector/guard/guardtest"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

// snapshots gives all pages of a snapshot.
func snapshots(t *testing.T, d *desk, g *contract.Grant, scope string) (docs []catalogue.SnapshotDoc, pages []catalogue.FileSnapshotOut) {
	t.Helper()
	cursor := ""
	for len(pages) == 0 || cursor != "" {
		args := "{" + scope
		if cursor != "" {
			args += fmt.Sprintf(`,"cursor":%q`, cursor)
		}
		out := ok[catalogue.FileSnapshotOut](t, d, g, "file.export_markdown_snapshot", args+"}")
		if out.Page.Offset != len(docs) || out.Page.HasNext != (out.Page.NextCursor != "") || out.Truncated != out.Page.HasNext {
			t.Fatalf("page %+v after %d documents", out.Page, len(docs))
		}
		docs, pages, cursor = append(docs, out.Documents...), append(pages, out), out.Page.NextCursor
		if len(pages) > 50 {
			t.Fatal("no end")
		}
	}
	return docs, pages
}

func TestASnapshotComesPageByPageAndWhole(t *testing.T) {
	t.Parallel()
	d := fileDesk(t)
	scope := fmt.Sprintf(`"notebookID":%q,"roots":["/"]`, guardtest.Work)
	whole, _ := snapshots(t, d, writer(), scope)
	byOne, pages := snapshots(t, d, writer(), scope+`,"limit":1`)
	if len(whole) < 3 || len(pages) != len(whole) {
		t.Fatalf("%d documents, %d pages of one", len(whole), len(pages))
	}
	for i, doc := range whole {
		if doc.ID != byOne[i].ID || doc.Content != byOne[i].Content || doc.ContentHash != byOne[i].ContentHash || doc.MetadataHash != byOne[i].MetadataHash || doc.RelativePath != byOne[i].RelativePath {
			t.Errorf("%d: %+v and %+v", i, doc, byOne[i])
		}
		sum := sha256.Sum256([]byte(doc.Content))
		if doc.ContentHash != hex.EncodeToString(sum[:]) {
			t.Errorf("%s: the hash is of something else", doc.HPath)
		}
		if i > 0 && whole[i-1].HPath > doc.HPath {
			t.Errorf("%s stands behind %s", doc.HPath, whole[i-1].HPath)
		}
		if md := ok[catalogue.FileExportMDOut](t, d, writer(), "file.export_md", fmt.Sprintf(`{"id":%q}`, doc.ID)); strings.TrimSpace(md.Content) != strings.TrimSpace(doc.Content) {
			t.Errorf("%s: %q, as export_md has it %q", doc.HPath, doc.Content, md.Content)
		}
	}
	for _, p := range pages[1:] {
		if p.InventoryHash != pages[0].InventoryHash || p.Scope != pages[0].Scope || p.Kind != "siyuan-markdown-snapshot" || p.Status != "complete" {
			t.Errorf("%+v", p)
		}
	}
}

// Documents come whole, as many as an answer has room for; the first in any case.
func TestASnapshotKeepsWithinTheBudget(t *testing.T) {
	t.Parallel()
	d := fileDesk(t)
	for i := range 6 {
		d.Add(t, guardtest.Doc{Box: guardtest.Work, Path: fmt.Sprintf("/2024010900004%d-longdoc.sy", i), Title: fmt.Sprintf("Long %d", i), Text: strings.Repeat("字 ", 700)})
	}
	call := func(cursor string, chars int) (out catalogue.FileSnapshotOut, size int) {
		args := fmt.Sprintf(`{"notebookID":%q,"roots":["/"]%s}`, guardtest.Work, cursor)
		r := d.exec.Handle(t.Context(), contract.Call{Tool: "file", Action: "export_markdown_snapshot", Grant: writer(), Args: json.RawMessage(args), ResultChars: chars}, nil)
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		if err := json.Unmarshal(r.Body, &out); err != nil {
			t.Fatal(err)
		}
		return out, utf8.RuneCount(r.Body)
	}
	const budget, head = 4000, 1000 // what stands around the documents
	seen, cursor := 0, ""
	for {
		out, size := call(cursor, budget)
		if len(out.Documents) == 0 || size > budget+head && len(out.Documents) > 1 {
			t.Fatalf("%d documents in %d characters", len(out.Documents), size)
		}
		if seen += len(out.Documents); !out.Page.HasNext {
			if seen != out.Page.Total {
				t.Errorf("%d of %d documents came", seen, out.Page.Total)
			}
			return
		}
		cursor = fmt.Sprintf(`,"cursor":%q`, out.Page.NextCursor)
	}
}

func TestACursorIsGoodForItsSnapshotAlone(t *testing.T) {
	t.Parallel()
	d := fileDesk(t)
	scope := fmt.Sprintf(`"notebookID":%q,"roots":["/"],"limit":1`, guardtest.Work)
	first := ok[catalogue.FileSnapshotOut](t, d, writer(), "file.export_markdown_snapshot", "{"+scope+"}")
	next := fmt.Sprintf(`,"cursor":%q`, first.Page.NextCursor)
	fails(t, d.call(writer(), "file.export_markdown_snapshot", fmt.Sprintf(`{"notebookID":%q,"documentIDs":[%q]%s}`, guardtest.Work, guardtest.Alpha, next)), contract.StateChanged)
	fails(t, d.call(writer(), "file.export_markdown_snapshot", "{"+scope+strings.Replace(next, `"1.`, `"2.x`, 1)+"}"), contract.StateChanged)
	for _, odd := range []string{"x", "-1" + first.Page.NextCursor[1:], "99999999999999999999" + first.Page.NextCursor[1:], "99" + first.Page.NextCursor[1:]} {
		fails(t, d.call(writer(), "file.export_markdown_snapshot", fmt.Sprintf(`{%s,"cursor":%q}`, scope, odd)), contract.StateChanged)
	}
	ok[catalogue.FileSnapshotOut](t, d, writer(), "file.export_markdown_snapshot", "{"+scope+next+"}")
	d.Add(t, guardtest.Doc{Box: guardtest.Work, Path: "/20240109000020-newdocu.sy", Title: "New", Text: "new"})
	fails(t, d.call(writer(), "file.export_markdown_snapshot", "{"+scope+next+"}"), contract.StateChanged)
}

func TestASnapshotGivesEveryDocumentAPathOfItsOwn(t *testing.T) {
	t.Parallel()
	d := fileDesk(t)
	for id, title := range map[string]string{"20240109000021-twinone": "Twin", "20240109000022-twintwo": "Twin", "20240109000023-twinlow": "twin", "20240109000024-dotdots": "..", "20240109000025-backsla": `a\b`} {
		d.Add(t, guardtest.Doc{Box: guardtest.Work, Path: "/" + id + ".sy", Title: title, Text: title})
	}
	docs, pages := snapshots(t, d, writer(), fmt.Sprintf(`"notebookID":%q,"roots":["/"]`, guardtest.Work))
	paths := map[string]string{}
	for _, doc := range docs {
		if paths[doc.ID] = doc.RelativePath; !filepath.IsLocal(doc.RelativePath) || !strings.HasSuffix(doc.RelativePath, ".md") || strings.Contains(doc.RelativePath, `\`) {
			t.Errorf("path %q", doc.RelativePath)
		}
	}
	for id, want := range map[string]string{
		"20240109000021-twinone": "Twin [20240109000021-twinone].md", "20240109000022-twintwo": "Twin [20240109000022-twintwo].md", "20240109000023-twinlow": "twin.md",
		"20240109000024-dotdots": "[20240109000024-dotdots].md", "20240109000025-backsla": "a_b.md",
	} {
		if paths[id] != want {
			t.Errorf("%s: %q, want %q", id, paths[id], want)
		}
	}
	if len(pages[0].Conflicts) != 0 {
		t.Errorf("conflicts %+v", pages[0].Conflicts)
	}
	d.Add(t, guardtest.Doc{Box: guardtest.Work, Path: "/20240109000026-cafenfc.sy", Title: "Caf\u00e9", Text: "x"})
	d.Add(t, guardtest.Doc{Box: guardtest.Work, Path: "/20240109000027-cafenfd.sy", Title: "CAFE\u0301", Text: "x"})
	_, pages = snapshots(t, d, writer(), fmt.Sprintf(`"notebookID":%q,"roots":["/"]`, guardtest.Work))
	if c := pages[len(pages)-1].Conflicts; len(pages) == 1 && (len(c) != 1 || !slices.Contains(c[0].IDs, "20240109000026-cafenfc") || !slices.Contains(c[0].IDs, "20240109000027-cafenfd")) {
		t.Errorf("conflicts %+v", c)
	}
	chosen := ok[catalogue.FileSnapshotOut](t, d, writer(), "file.export_markdown_snapshot", fmt.Sprintf(`{"notebookID":%q,"documentIDs":["20240109000023-twinlow","20240109000023-twinlow"]}`, guardtest.Work))
	if chosen.Page.Total != 1 || chosen.Documents[0].RelativePath != "twin [20240109000023-twinlow].md" {
		t.Errorf("%+v", chosen)
	}
}

func TestASnapshotHasOneReadableNotebookAlone(t *testing.T) {
	t.Parallel()
	d := fileDesk(t)
	docs, _ := snapshots(t, d, owner(), fmt.Sprintf(`"notebookID":%q,"roots":["/"]`, guardtest.Diary))
	for _, doc := range docs {
		if doc.ID == guardtest.Alpha {
			t.Error("a document of another notebook")
		}
	}
	for _, args := range []string{
		fmt.Sprintf(`{"notebookID":%q,"roots":["/"]}`, guardtest.Private), fmt.Sprintf(`{"notebookID":%q,"documentIDs":["20240109000013-privpic"]}`, guardtest.Work),
		fmt.Sprintf(`{"notebookID":%q,"documentIDs":["20240109000099-missing"]}`, guardtest.Work),
	} {
		fails(t, d.call(writer(), "file.export_markdown_snapshot", args), contract.NotFound)
	}
	fails(t, d.call(writer(), "file.export_markdown_snapshot", fmt.Sprintf(`{"notebookID":%q,"documentIDs":[%q]}`, guardtest.Diary, guardtest.Alpha)), contract.InvalidTarget)
	root := ok[catalogue.FileSnapshotOut](t, d, writer(), "file.export_markdown_snapshot", fmt.Sprintf(`{"notebookID":%q,"roots":["/%s.sy"]}`, guardtest.Work, sharedDoc))
	if root.Page.Total != 1 || root.Documents[0].ID != sharedDoc || root.Documents[0].StoragePath != "/"+sharedDoc+".sy" {
		t.Errorf("a root is among its documents: %+v", root)
	}
}

func TestImagesAreComparedByNameAndNumber(t *testing.T) {
	t.Parallel()
	d := fileDesk(t)
	const id = "20240109000030-audited"
	d.Add(t, guardtest.Doc{Box: guardtest.Work, Path: "/" + id + ".sy", Title: "Audited", Text: "![a](" + sharedFile + ")\n\n![b](assets/b%20c.png)\n\n[no](assets/plain.txt)\n\n![a](" + sharedFile + ")\n"})
	for _, c := range []struct{ expected, missing, extra string }{
		{`"shared.png","https://example.org/x/b%20c.png?y=1","shared.png"`, "", ""},
		{`"assets/shared-20240106090000-pngdot1.png","b c.png"`, "", sharedFile},
		{`"shared.png","b c.png","b c.png","Shared.png"`, "b c.png Shared.png", sharedFile},
		{``, "", sharedFile + " assets/b%20c.png " + sharedFile},
	} {
		out := ok[catalogue.FileAuditOut](t, d, writer(), "file.audit_image_refs", fmt.Sprintf(`{"id":%q,"expectedRefs":[%s]}`, id, c.expected))
		if strings.Join(out.Missing, " ") != c.missing || strings.Join(out.Extra, " ") != c.extra || out.Matches != (c.missing+c.extra == "") || len(out.Actual) != 3 || out.Comparison == "" {
			t.Errorf("%s: %+v", c.expected, out)
		}
	}
}

// The first bytes of the formats, as their specifications have them.
var firstBytes = map[string]string{
	"image/png": "\x89PNG\r\n\x1a\n", "image/jpeg": "\xff\xd8\xff\xe0", "image/gif": "GIF89a", "image/webp": "RIFF\x00\x00\x00\x00WEBPVP8 ",
}

func TestAnImageIsShownToThoseWhoMayReadIt(t *testing.T) {
	t.Parallel()
	d := fileDesk(t)
	read := func(g *contract.Grant, args string) contract.Result { return d.call(g, "file.read_image", args) }
	byID := fmt.Sprintf(`{"id":%q,"path":%q}`, sharedDoc, sharedFile)
	fails(t, read(writer(), byID), contract.Unsupported) // its bytes are no image's
	for kind, first := range firstBytes {
		write(t, d.Home, sharedFile, first+"rest")
		for _, args := range []string{byID, fmt.Sprintf(`{"documentPath":"/Work/Pictures","path":"/%s"}`, sharedFile)} {
			out := ok[catalogue.FileReadImageOut](t, d, writer(), "file.read_image", args)
			if out.MimeType != kind || string(out.Data) != first+"rest" || out.Bytes != int64(len(first)+4) || out.DocumentID != sharedDoc || out.Path != sharedFile || out.Delivery != "image" {
				t.Errorf("%s %s: %+v", kind, args, out)
			}
		}
	}
	write(t, d.Home, sharedFile, "<svg xmlns='http://www.w3.org/2000/svg'><script/></svg>")
	fails(t, read(writer(), byID), contract.Unsupported)
	for name, c := range map[string]struct {
		args string
		g    *contract.Grant
		want contract.Code
	}{
		"an image of another document": {fmt.Sprintf(`{"id":%q,"path":%q}`, guardtest.Alpha, sharedFile), writer(), contract.InvalidTarget},
		"a hidden document":            {fmt.Sprintf(`{"id":"20240109000013-privpic","path":%q}`, secretFile), hiding(), contract.NotFound},
		"a level less":                 {byID, guardtest.Grant(map[string]contract.Level{guardtest.Work: contract.ReadWrite}), contract.NotFound}, // Diary shows it too
		"a way out":                    {fmt.Sprintf(`{"id":%q,"path":"assets/../../conf/conf.json"}`, sharedDoc), owner(), contract.NotFound},
		"an encoded way out":           {fmt.Sprintf(`{"id":%q,"path":"assets/%%2e%%2e/conf.json"}`, sharedDoc), owner(), contract.NotFound},
		"a URL":                        {fmt.Sprintf(`{"id":%q,"path":"https://example.org/a.png"}`, sharedDoc), owner(), contract.NotFound},
		"a notebook's path":            {fmt.Sprintf(`{"documentPath":"/Work","path":%q}`, sharedFile), writer(), contract.InvalidTarget},
	} {
		if r := read(c.g, c.args); contract.CodeOf(r.Err) != c.want {
			t.Errorf("%s: %s %v, want %s", name, r.Body, r.Err, c.want)
		}
	}
}

func TestALargeImageIsRefusedWithTheWayToGetIt(t *testing.T) {
	t.Parallel()
	d := fileDesk(t)
	big := append([]byte(firstBytes["image/png"]), bytes.Repeat([]byte{0}, 5<<20)...)
	if err := os.WriteFile(filepath.Join(d.Kernel.Dir(), "data", filepath.FromSlash(sharedFile)), big, 0o600); err != nil {
		t.Fatal(err)
	}
	r := d.call(writer(), "file.read_image", fmt.Sprintf(`{"id":%q,"path":%q}`, sharedDoc, sharedFile))
	fails(t, r, contract.TooLarge)
	if !strings.Contains(r.Err.Hint, "file.download_asset") {
		t.Errorf("hint %q", r.Err.Hint)
	}
}
