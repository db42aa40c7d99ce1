package cases_test

import (
	"slices"
	"strings"
	"testing"

	"siyuan-broker/connector/guard/guardtest"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

// people are texts as people write them, in every script and at any size.
var people = map[string]string{
	"mixed":         "Hello — 世界 𠮷 👨‍👩‍👧",
	"64 KB of CJK":  strings.Repeat("海洋𠮷", 64<<10/10),
	"flags":         "🏳️‍🌈 🇨🇳 👍🏽",
	"right to left": "مرحبا بالعالم",
	"combining":     "e\u0301 \u1100\u1161 ก็",
	"private":       "\ue000 \U0010fffd",
	"cjk ext":       "𪚥 㐀 﨑",
	"soft breaks":   "a\u2009b\u3000c\u202fd",
}

// TestK30TextIsStoredByteForByte by every action that takes text, and read back
// by every one that gives it.
func TestK30TextIsStoredByteForByte(t *testing.T) {
	t.Parallel()
	for name, text := range people {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			var ids []string
			ids = append(ids, d.append(t, guardtest.Projects, text)...)
			for _, place := range []string{`"previousID":"` + guardtest.Intro + `"`, `"nextID":"` + guardtest.Intro + `"`, `"parentID":"` + guardtest.Alpha + `"`} {
				ids = append(ids, ok[catalogue.BlockInsertOut](t, d, "block.insert", `{"dataType":"markdown","data":%q,`+place+`}`, text).ID)
			}
			ids = append(ids, ok[catalogue.BlockAppendOut](t, d, "block.prepend", `{"dataType":"markdown","data":%q,"parentID":%q}`, text, guardtest.Alpha).ID)
			updated := ok[catalogue.BlockUpdateOut](t, d, "block.update", `{"id":%q,"dataType":"markdown","data":%q}`, guardtest.Intro, text)
			made := ok[catalogue.DocumentCreateOut](t, d, "document.create", `{"notebook":%q,"path":"/Text","markdown":%q}`, guardtest.Work, text)
			ids = append(ids, updated.ID, string(d.children(t, made.ID)[0].ID))
			for i, id := range ids {
				if got := ownLine(ok[catalogue.BlockGetKramdownOut](t, d, "block.get_kramdown", `{"id":%q}`, id).Kramdown); got != text {
					t.Errorf("way %d: %d bytes came back as %d: %.60q", i, len(text), len(got), got)
				}
			}
			if got := ok[catalogue.DocumentGetDocOut](t, d, "document.get_doc", `{"id":%q,"tokenBudget":32000}`, made.ID); strings.TrimSpace(got.Content) != text {
				t.Errorf("get_doc gives %d bytes of %d: %.60q", len(got.Content), len(text), got.Content)
			}
			if name != "64 KB of CJK" {
				found := ok[catalogue.SearchFulltextOut](t, d, "search.fulltext", `{"query":%q,"typeShortcodes":["p"]}`, strings.Fields(text)[0])
				if found.Total == 0 || found.Data[0].Content != text {
					t.Errorf("search finds %+v", found)
				}
			}
		})
	}
}

// ownLine is a paragraph's kramdown without its attributes.
func ownLine(kramdown string) string {
	text, _, _ := strings.Cut(kramdown, "\n{:")
	return text
}

// hashes are tables and code whose lines look like headings.
var hashes = map[string]string{
	"code cell":      "| a | b |\n| --- | --- |\n| `# x` | `## y` |",
	"plain cell":     "| a | b |\n| --- | --- |\n| # x | ## y |",
	"cell with pipe": "| a | b |\n| --- | --- |\n| `a\\|# x` | y |",
	"aligned":        "| a | b |\n| :-- | --: |\n| `# x` | - y |",
	"fence":          "```sh\n# x\n## Another\n- y\n```",
}

// TestK35TablesAndHeadingsStayWhatTheyAre: text is put below a heading, and
// sections are replaced by tables whose cells hold `# x`.
func TestK35TablesAndHeadingsStayWhatTheyAre(t *testing.T) {
	t.Parallel()
	for name, text := range hashes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			made := ok[catalogue.DocumentCreateOut](t, d, "document.create", `{"notebook":%q,"path":"/Sections","markdown":%q}`, guardtest.Work, "## One\n\nfirst\n\n## Another\n\nlast")
			blocks := d.children(t, made.ID)
			types := func() (all []string) {
				for _, b := range d.children(t, made.ID) {
					all = append(all, b.Type)
				}
				return all
			}
			kind := "t"
			if name == "fence" {
				kind = "c"
			}
			// Append under "## Another": the heading takes nothing and says where to write.
			e := d.fails(t, contract.InvalidTarget, "block.append", `{"parentID":%q,"dataType":"markdown","data":%q}`, string(blocks[2].ID), text)
			if !strings.Contains(e.Hint, "section") {
				t.Errorf("hint %q", e.Hint)
			}
			ok[struct{}](t, d, "block.insert", `{"previousID":%q,"dataType":"markdown","data":%q}`, string(blocks[3].ID), text)
			ok[struct{}](t, d, "block.update", `{"id":%q,"dataType":"markdown","data":%q}`, string(blocks[1].ID), text)
			d.append(t, made.ID, text)
			if got, want := types(), []string{"h", kind, "h", "p", kind, kind}; !slices.Equal(got, want) {
				t.Fatalf("blocks %v, want %v", got, want)
			}
			for i, b := range d.children(t, made.ID) {
				if b.Type == kind && cells(b.Markdown) != cells(text) {
					t.Errorf("block %d is\n%s\nwant\n%s", i, b.Markdown, text)
				}
			}
			outline := ok[catalogue.DocumentGetOutlineOut](t, d, "document.get_outline", `{"id":%q}`, made.ID)
			if outline.HeadingCount != 2 {
				t.Errorf("outline %+v, want two headings", outline.Outline)
			}
			whole := ok[catalogue.DocumentCreateOut](t, d, "document.create", `{"notebook":%q,"path":"/Whole","markdown":%q}`, guardtest.Work, "## Another\n\n"+text+"\n\nend")
			if got := d.children(t, whole.ID); len(got) != 3 || got[1].Type != kind || cells(got[1].Markdown) != cells(text) {
				t.Errorf("a new document with it: %+v", got)
			}
		})
	}
}

// cells is a table without the spaces and dashes that only align it.
func cells(table string) string {
	lines := strings.Split(strings.TrimSpace(strings.ReplaceAll(table, "\u200b", "")), "\n")
	for i, l := range lines {
		if !strings.HasPrefix(l, "|") {
			continue
		}
		parts := strings.Split(l, "|")
		for j, c := range parts {
			parts[j] = strings.TrimSpace(c)
			if i == 1 {
				parts[j] = strings.ReplaceAll(parts[j], "-", "")
			}
		}
		lines[i] = strings.Join(parts, "|")
	}
	return strings.Join(lines, "\n")
}
