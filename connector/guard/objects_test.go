package guard_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/guard/guardtest"
	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
)

const (
	ownAsset    = "assets/own-20240106090000-pngdot1.png"
	sharedAsset = "assets/shared-20240106090001-pngdot2.png"
	hiddenAsset = "assets/hidden-20240106090002-pngdot3.png"
)

func withAssets(t *testing.T) *guardtest.Home {
	notes := append(guardtest.Notes(),
		guardtest.Doc{Box: guardtest.Work, Path: "/20240102100300-betadoc.sy", Title: "Pictures", Text: "![a](" + ownAsset + ") ![b](" + sharedAsset + ")\n"},
		guardtest.Doc{Box: guardtest.Private, Path: "/20240104090100-healthd.sy", Title: "Hidden", Text: "![b](" + sharedAsset + ") ![c](" + hiddenAsset + ")\n"})
	h := guardtest.NewWith(t, notes)
	for _, p := range []string{ownAsset, sharedAsset, hiddenAsset} {
		if err := os.WriteFile(filepath.Join(h.Kernel.Dir(), "data", p), []byte("png of "+p), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

func TestAnAssetNeedsTheLevelInEveryNotebookThatLinksToIt(t *testing.T) {
	t.Parallel()
	h := withAssets(t)
	s := h.Writer(t)
	ctx := context.Background()
	a, err := s.Asset(ctx, "/data/"+ownAsset, contract.ReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	if data, _, err := s.AssetFile(ctx, a); err != nil || string(data) != "png of "+ownAsset {
		t.Errorf("asset %q, err %v", data, err)
	}
	_, err = s.Asset(ctx, ownAsset, contract.ReadWriteDelete)
	wantCode(t, err, contract.PermissionDenied)
	_, missing := s.Asset(ctx, "assets/none.png", contract.Read)
	for _, p := range []string{
		sharedAsset, hiddenAsset, "assets/../../conf/conf.json", "/conf/conf.json", "assets/%2e%2e/x.png", "assets/./x.png", "assets//x.png",
		"assets/.siyuan/x", "assets", "assets/", `assets\..\x`, "data/assets/../x", "/data/storage/petal/x", "assets/x\x00.png", "",
	} {
		_, err := s.Asset(ctx, p, contract.Read)
		if got, want := answer(err, "-"), answer(missing, "-"); got != want {
			t.Errorf("%q answers %s, want %s", p, got, want)
		}
	}
}

func TestAnAssetIsLinkedOnlyWhereItCanBeRead(t *testing.T) {
	t.Parallel()
	s := withAssets(t).Writer(t)
	if _, err := appendTo(t, s, guardtest.Projects, "![x]("+ownAsset+")"); err != nil {
		t.Error(err)
	}
	_, err := appendTo(t, s, guardtest.Projects, "![x]("+hiddenAsset+")")
	wantCode(t, err, contract.HiddenReference)
}

const (
	av     = "20240102100710-avtasks"
	avRows = `{"av":{"id":"` + av + `","name":"Tasks","keyValues":[{"key":{"id":"20240102100711-keyprim","name":"Primary Key","type":"block"},"values":[%s]},` +
		`{"key":{"id":"20240102100712-keytmpl","name":"T","type":"template","template":".action{queryBlocks \"select 1\"}"}}],` +
		`"viewID":"20240102100713-viewone","views":[{"id":"20240102100713-viewone","name":"Table","type":"table"}]}}`
)

func primary(item, block, content string) string {
	return fmt.Sprintf(`{"id":"%s","keyID":"20240102100711-keyprim","blockID":"%s","type":"block","block":{"id":"%s","content":"%s"}}`, item, item, block, content)
}

// withDatabase is a home whose kernel has a database shown in Alpha, with rows
// bound to the given blocks.
func withDatabase(t *testing.T, blocks ...string) *guardtest.Home {
	h := guardtest.New(t)
	var values, rows []string
	for i, b := range blocks {
		item := fmt.Sprintf("2024010210073%d-itemrow", i)
		values = append(values, primary(item, b, "TEXT OF "+b))
		rows = append(rows, fmt.Sprintf(`{"id":"%s","cells":[{"id":"%s","valueType":"block","value":%s},{"id":"%s","valueType":"template","value":{"keyID":"20240102100712-keytmpl","blockID":"%s","type":"template","template":{"content":"CANARY"}}}]}`,
			item, item, primary(item, b, "TEXT OF "+b), item, item))
	}
	h.Answer("/api/av/getMirrorDatabaseBlocks", `{"refDefs":[{"refID":"`+guardtest.Intro+`","defIDs":[]}]}`)
	h.Answer("/api/av/getAttributeView", fmt.Sprintf(avRows, strings.Join(values, ",")))
	h.Answer("/api/av/renderAttributeView", `{"id":"`+av+`","name":"Tasks","viewID":"20240102100713-viewone","viewType":"table","views":[],"view":{"id":"20240102100713-viewone","name":"Table","rows":[`+strings.Join(rows, ",")+`]}}`)
	return h
}

func TestADatabaseWithAHiddenRowDoesNotExist(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := withDatabase(t, guardtest.Intro, guardtest.SecretP).Writer(t)
	_, hidden := s.Database(ctx, av, contract.Read)
	wantCode(t, hidden, contract.NotFound)
	h := guardtest.New(t)
	h.Answer("/api/av/getMirrorDatabaseBlocks", `{"refDefs":[]}`)
	_, missing := h.Writer(t).Database(ctx, guardtest.Missing, contract.Read)
	if got, want := answer(hidden, av), answer(missing, guardtest.Missing); got != want {
		t.Errorf("hidden answers %s, missing %s", got, want)
	}
}

func TestADatabaseNeedsTheLevelInEveryNotebookItTouches(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := withDatabase(t, guardtest.Intro, guardtest.EntryP).Writer(t)
	d, err := s.Database(ctx, av, contract.Read)
	if err != nil || d.Level() != contract.Read {
		t.Fatalf("level %s, err %v; want r, the level in the notebook of one row", d.Level(), err)
	}
	_, err = s.Database(ctx, av, contract.ReadWrite)
	wantCode(t, err, contract.PermissionDenied)
}

func TestDatabaseCellsOfUnreadableBlocksArePlaceholders(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := withDatabase(t, guardtest.Intro, guardtest.Missing, guardtest.Closed).Writer(t)
	d, err := s.Database(ctx, av, contract.Read)
	if err != nil {
		t.Fatal(err)
	}
	v, err := s.Render(ctx, d, guard.DatabaseQuery{Page: 1, Size: -1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range v.Rows {
		got = append(got, r.Cells[0].Block.Content)
		if r.Cells[1].Text == nil || r.Cells[1].Text.Content != guard.Placeholder || r.Cells[1].Template != nil {
			t.Errorf("template cell %+v shows a query's result", r.Cells[1])
		}
	}
	if want := "TEXT OF " + guardtest.Intro + "|" + guard.Placeholder + "|" + guard.Placeholder; strings.Join(got, "|") != want {
		t.Errorf("cells %v, want %s", got, want)
	}
}

func TestARowWhoseTextCitesSomethingHiddenShowsThePlaceholder(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := withDatabase(t, guardtest.Links).Writer(t)
	d, err := s.Database(ctx, av, contract.Read)
	if err != nil {
		t.Fatal(err)
	}
	v, err := s.Render(ctx, d, guard.DatabaseQuery{Page: 1, Size: -1}, nil)
	if err != nil || !strings.HasPrefix(v.Rows[0].Cells[0].Block.Content, "See [not available], my words") {
		t.Errorf("cell %+v, err %v", v.Rows[0].Cells[0].Block, err)
	}
}

func TestCardsOfHiddenBlocksAreNotThere(t *testing.T) {
	t.Parallel()
	h := guardtest.New(t)
	_, err := h.Client.Writer().AddCards(context.Background(), siyuan.BuiltinDeck, []siyuan.ID{guardtest.SecretP, guardtest.Intro, guardtest.Missing})
	if err != nil {
		t.Fatal(err)
	}
	cards, err := h.Writer(t).Flashcards(context.Background(), guard.BuiltinDeck)
	if err != nil || len(cards) != 1 || cards[0].ID != guardtest.Intro || cards[0].Due.IsZero() || !cards[0].LastReview.IsZero() {
		t.Errorf("cards %+v, err %v", cards, err)
	}
}

func TestGraphHasReadableNodesOnly(t *testing.T) {
	t.Parallel()
	s := guardtest.NewWith(t, linked()).Writer(t)
	g, err := s.Graph(context.Background(), block(t, s, guardtest.Heading, contract.Read))
	if got := ids(g.Nodes, rowID); err != nil || got != guardtest.Heading+" 20240102110071-block47" || len(g.Links) != 1 {
		t.Errorf("nodes %s, links %v, err %v", got, g.Links, err)
	}
}

func TestHistoryIsOfTheDocumentAlone(t *testing.T) {
	t.Parallel()
	h := guardtest.New(t)
	file := func(box, name string) string { return "/history/2026-11-30-125144-update/" + box + "/" + name }
	item := func(path string) string {
		return `{"title":"x","path":"` + path + `","op":"update","notebook":"` + guardtest.Work + `"}`
	}
	own := file(guardtest.Work, guardtest.Projects+"/"+guardtest.Alpha+".sy")
	h.Answer("/api/history/searchHistory", `{"histories":["1796043104"],"pageCount":1,"totalCount":1}`)
	h.Answer("/api/history/getHistoryItems", `{"items":[`+strings.Join([]string{
		item(own), item(own), item(file(guardtest.Private, guardtest.Alpha+".sy")), item(file(guardtest.Work, guardtest.Secret+".sy")),
		item("/history/../conf/" + guardtest.Work + "/" + guardtest.Alpha + ".sy"),
	}, ",")+`]}`)
	h.Answer("/api/history/getDocHistoryContent", `{"id":"`+guardtest.Alpha+`","rootID":"`+guardtest.Alpha+`","content":"<div data-node-id=\"`+guardtest.Links+
		`\" data-type=\"NodeParagraph\"><div>see <span data-type=\"block-ref\" data-subtype=\"d\" data-id=\"`+guardtest.Secret+`\">`+guardtest.SecretTitle+`</span></div></div>","isLargeDoc":false}`)
	s := h.Writer(t)
	ctx := context.Background()
	d, err := s.Doc(ctx, guardtest.Alpha, contract.Read)
	if err != nil {
		t.Fatal(err)
	}
	versions, err := s.History(ctx, d)
	if err != nil || len(versions) != 1 || versions[0].Kept != "1796043104" {
		t.Fatalf("versions %+v, err %v", versions, err)
	}
	dom, _, err := s.VersionDOM(ctx, versions[0])
	if err != nil || strings.Contains(dom, guardtest.SecretTitle) || !strings.Contains(dom, guard.Placeholder) {
		t.Errorf("version %s, err %v", dom, err)
	}
}
