package integration

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"siyuan-broker/contract"
	"siyuan-broker/tenants"
)

// TestContextResourcesGoHomeAsCallsDo reads what comes from notes as resources,
// in both eras: with the caller's levels, and with a clear error while the home
// is away.
func TestContextResourcesGoHomeAsCallsDo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	x := w.tenant("Ada", tenants.NewID())
	x.allow()
	h := x.home(nil)
	_, token := x.agentToken(tenants.NewID(), contract.ReadWriteDelete)
	s := w.agent(token, "")
	type created struct{ Notebook struct{ ID string } }
	type doc struct{ ID string }
	var ids [2]string
	var books [2]string
	for i, name := range []string{"Open", "Closed off"} {
		books[i] = into[created](t, s, "notebook", map[string]any{"action": "create", "name": name}).Notebook.ID
		ids[i] = into[doc](t, s, "document", map[string]any{"action": "create", "notebook": books[i], "path": "/" + name + " page", "markdown": strings.Repeat("Text of "+name+".\n\n", 300)}).ID
	}
	x.change(func(tx tenants.Tx) error { return tx.SetLevel(t.Context(), x.instance, books[1], contract.None) })
	eventually(t, "the level is felt", func() bool {
		return call(t.Context(), s, "document", map[string]any{"action": "get_doc", "id": ids[1]}).code == contract.NotFound
	})

	read := func(s *mcp.ClientSession, uri string) (string, error) {
		got, err := s.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
		if err != nil {
			return "", err
		}
		return got.Contents[0].Text, nil
	}
	agents := map[string]*mcp.ClientSession{}
	for _, era := range []string{"2026-07-28", "2025-11-25"} {
		a := w.agent(token, era)
		agents[era] = a
		for uri, want := range map[string]string{
			"siyuan://workspace/info": books[0], "siyuan://notebooks": `"name":"Open"`, "siyuan://recent": ids[0], "siyuan://doc/" + ids[0]: "Text of Open.", "siyuan://help/user-rules": "/USER_RULES.md",
			"siyuan://help/changelog": "entries",
		} {
			text, err := read(a, uri)
			if err != nil || !strings.Contains(text, want) || strings.Contains(text, books[1]) || strings.Contains(text, ids[1]) {
				t.Errorf("%s %s: %v %.300s", era, uri, err, text)
			}
		}
		// A long document comes in pieces that lead to one another.
		uri, total, pieces := "siyuan://doc/"+ids[0], 0, 0
		for uri != "" {
			text, err := read(a, uri)
			must(t, err)
			var piece struct {
				ReturnedBlocks int
				NextWindow     *struct{ BlockStart int }
			}
			must(t, json.Unmarshal([]byte(text), &piece))
			if total, pieces, uri = total+piece.ReturnedBlocks, pieces+1, ""; piece.NextWindow != nil {
				uri = "siyuan://doc/" + ids[0] + "?blockStart=" + strconv.Itoa(piece.NextWindow.BlockStart)
			}
		}
		if total != 300 || pieces < 2 {
			t.Errorf("%s: %d blocks in %d pieces", era, total, pieces)
		}
		hidden, missing := "siyuan://doc/"+ids[1], "siyuan://doc/"+missingID
		_, errHidden := read(a, hidden)
		_, errMissing := read(a, missing)
		if errHidden == nil || errMissing == nil || strings.ReplaceAll(errHidden.Error(), ids[1], "") != strings.ReplaceAll(errMissing.Error(), missingID, "") {
			t.Errorf("%s: hidden %v, missing %v", era, errHidden, errMissing)
		}
	}

	must(t, h.stop())
	for era, a := range agents {
		_, err := read(a, "siyuan://notebooks")
		var rpc *jsonrpc.Error
		if !errors.As(err, &rpc) || !strings.Contains(string(rpc.Data), `"code":"connector_offline"`) || rpc.Message == "" {
			t.Errorf("%s while the home is away: %v", era, err)
		}
		if _, err := read(a, "siyuan://help/index"); err != nil {
			t.Errorf("%s: help needs the home: %v", era, err)
		}
	}
}

const missingID = "20200101000000-missing"
