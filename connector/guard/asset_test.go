package guard_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/guard/guardtest"
	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
)

// wholeSession sees every notebook.
func wholeSession(t *testing.T, h *guardtest.Home, switches ...contract.Switch) *guard.Session {
	t.Helper()
	g := guardtest.Grant(map[string]contract.Level{guardtest.Work: contract.ReadWriteDelete})
	g.Default, g.Switches = contract.Read, switches
	return h.Holding(t, g)
}

func plant(t *testing.T, h *guardtest.Home, asset string) {
	t.Helper()
	name := filepath.Join(h.Kernel.Dir(), "data", filepath.FromSlash(asset))
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte("bytes of "+asset), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Links may be spelled in ways that lead to the same file; each of them makes the
// hidden notebook one of its owners.
func TestEverySpellingOfAHiddenLinkHidesTheFile(t *testing.T) {
	t.Parallel()
	const id = "20240106090000-pdfpdf1"
	for name, link := range map[string]string{
		"as it is": "assets/plan-" + id + ".pdf", "a page": "assets/plan-" + id + ".pdf?p=3", "a fragment": "assets/plan-" + id + ".pdf#top",
		"encoded": "assets/plan%2D" + id + ".pdf", "a detour": "assets/x/../plan-" + id + ".pdf", "two slashes": "assets//plan-" + id + ".pdf",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := "assets/plan-" + id + ".pdf"
			h := guardtest.NewWith(t, append(guardtest.Notes(),
				guardtest.Doc{Box: guardtest.Work, Path: "/20240102100300-betadoc.sy", Title: "Mine", Text: "[a](" + file + ")\n"},
				guardtest.Doc{Box: guardtest.Private, Path: "/20240104090100-healthd.sy", Title: "Theirs", Text: "[a](" + link + ")\n"}))
			plant(t, h, file)
			_, err := h.Writer(t).Asset(context.Background(), file, contract.Read)
			wantCode(t, err, contract.NotFound)
			if _, err := wholeSession(t, h).Asset(context.Background(), file, contract.Read); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestACoverIsALink(t *testing.T) {
	t.Parallel()
	h := guardtest.NewWith(t, append(guardtest.Notes(), guardtest.Doc{Box: guardtest.Work, Path: "/20240102100300-betadoc.sy", Title: "Mine", Text: "[a](assets/cover.png)\n"}))
	plant(t, h, "assets/cover.png")
	if _, err := h.Writer(t).Asset(context.Background(), "assets/cover.png", contract.Read); err != nil {
		t.Fatal(err)
	}
	err := h.Client.Writer().SetBlockAttrs(context.Background(), guardtest.Secret, siyuan.Attrs{"title-img": `background-image:url("/assets/cover.png")`})
	if err != nil {
		t.Fatal(err)
	}
	_, err = h.Writer(t).Asset(context.Background(), "assets/cover.png", contract.Read)
	wantCode(t, err, contract.NotFound)
}

func TestAFileThatNothingLinksToNeedsTheSwitch(t *testing.T) {
	t.Parallel()
	h := withAssets(t)
	plant(t, h, "assets/loose.txt")
	ctx := context.Background()
	_, err := wholeSession(t, h).Asset(ctx, "assets/loose.txt", contract.Read)
	wantCode(t, err, contract.PermissionDenied)
	if a, err := wholeSession(t, h, contract.SwitchAssets).Asset(ctx, "assets/loose.txt", contract.Read); err != nil || a.Size() != int64(len("bytes of assets/loose.txt")) {
		t.Errorf("size %d, err %v", a.Size(), err)
	}
	hiding := guardtest.Grant(map[string]contract.Level{guardtest.Work: contract.ReadWriteDelete})
	hiding.Switches = []contract.Switch{contract.SwitchAssets}
	_, err = h.Holding(t, hiding).Asset(ctx, "assets/loose.txt", contract.Read)
	wantCode(t, err, contract.NotFound)
	_, err = wholeSession(t, h, contract.SwitchAssets).Asset(ctx, "assets/nosuch.txt", contract.Read)
	wantCode(t, err, contract.NotFound)
}

// A symbolic link among the files would let SiYuan hand out its settings.
func TestSymbolicLinksOutOfTheFolderAreNoAssets(t *testing.T) {
	t.Parallel()
	h := guardtest.NewWith(t, append(guardtest.Notes(),
		guardtest.Doc{Box: guardtest.Work, Path: "/20240102100300-betadoc.sy", Title: "Mine", Text: "[a](assets/leak.json) [b](assets/dir/conf.json)\n"}))
	dir := h.Kernel.Dir()
	for link, target := range map[string]string{"leak.json": filepath.Join("conf", "conf.json"), "dir": "conf"} {
		if err := os.Symlink(filepath.Join(dir, target), filepath.Join(dir, "data", "assets", link)); err != nil {
			t.Skip("this system makes no symbolic links: ", err)
		}
	}
	for _, p := range []string{"assets/leak.json", "assets/dir/conf.json"} {
		_, err := h.Writer(t).Asset(context.Background(), p, contract.Read)
		wantCode(t, err, contract.NotFound)
	}
}

func TestFilesInCellsAreListedOnlyWhenNothingIsHidden(t *testing.T) {
	t.Parallel()
	h := withAssets(t)
	h.Answer("/api/asset/getDocAssets", `["`+ownAsset+`","`+hiddenAsset+`"]`) // as SiYuan answers for a document with a database
	for _, c := range []struct {
		s    *guard.Session
		want []string
	}{{h.Writer(t), []string{ownAsset}}, {wholeSession(t, h), []string{ownAsset, hiddenAsset}}} {
		d, err := c.s.Doc(context.Background(), "20240102100300-betadoc", contract.Read)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := c.s.DocAssets(context.Background(), d, false); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("lists %s, err %v, want %s", strings.Join(got, " "), err, strings.Join(c.want, " "))
		}
	}
}
