package integration

import (
	"archive/zip"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"siyuan-broker/contract"
	"siyuan-broker/tenants"
)

// aPNG is an image to whoever looks at its first bytes.
const aPNG = "\x89PNG\r\n\x1a\nrest"

// TestFilesGoThroughFoldersOfTheHomeMachineOnceAPersonAgreed goes the whole way, in
// both eras: what writes at home asks, what is only sent to the agent does not, and
// an image comes as one.
func TestFilesGoThroughFoldersOfTheHomeMachineOnceAPersonAgreed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	x := w.tenant("Ada", tenants.NewID())
	x.allow()
	x.on("file", "extract_doc")
	x.change(func(tx tenants.Tx) error { return tx.SetSwitch(t.Context(), x.instance, contract.SwitchAssets, true) })
	at := x.home(nil)
	agent, token := x.agentToken(tenants.NewID(), contract.ReadWriteDelete)
	in, out := t.TempDir(), t.TempDir()
	must(t, os.WriteFile(filepath.Join(in, "plan.png"), []byte(aPNG), 0o600))
	x.homeRule(at, agent, fmt.Sprintf("upload_folders: ['%s']\nexport_folders: ['%s']\n", in, out))

	for i, era := range eras {
		asked := 0
		answer := yes("")
		s := w.client(token, era, func(string) *mcp.ElicitResult { asked++; return answer }, nil)
		asks := func(want int, args map[string]any) answered {
			t.Helper()
			asked = 0
			a := call(t.Context(), s, "file", args)
			if asked != want {
				t.Errorf("%s, %v: asked %d times, want %d: %s", era, args["action"], asked, want, a.body)
			}
			return answered{t, a}
		}
		nb := into[madeNotebook](t, s, "notebook", map[string]any{"action": "create", "name": fmt.Sprintf("Files %d", i)}).Notebook.ID
		doc := into[made](t, s, "document", map[string]any{"action": "create", "notebook": nb, "path": "/Papers", "markdown": "one"}).ID

		var stored struct{ Path string }
		asks(1, map[string]any{"action": "upload_asset", "id": doc, "localFilePath": "plan.png"}).into(&stored)
		into[made](t, s, "block", map[string]any{"action": "append", "parentID": doc, "dataType": "markdown", "data": "![plan](" + stored.Path + ")"})

		shown, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "file", Arguments: map[string]any{"action": "read_image", "id": doc, "path": stored.Path}})
		must(t, err)
		image, isImage := shown.Content[len(shown.Content)-1].(*mcp.ImageContent)
		if len(shown.Content) != 2 || !isImage || string(image.Data) != aPNG || image.MIMEType != "image/png" {
			t.Errorf("%s: %+v", era, shown.Content)
		}
		if told := shown.Content[0].(*mcp.TextContent).Text; strings.Contains(told, base64.StdEncoding.EncodeToString([]byte(aPNG))) || !strings.Contains(told, `"mimeType":"image/png"`) {
			t.Errorf("%s: the text is %s", era, told)
		}

		extract := map[string]any{"action": "extract_doc", "id": doc}
		answer = &mcp.ElicitResult{Action: "decline"}
		asks(1, extract).is(contract.ConfirmationDeclined)
		if left, err := os.ReadDir(out); err != nil || len(left) != 2*i {
			t.Errorf("%s: declined, and there is %v, %v", era, left, err)
		}
		answer = yes("")
		var made struct{ ExtractedDir, DocMdFile string }
		asks(1, extract).into(&made)
		if b, err := os.ReadFile(filepath.Join(made.ExtractedDir, filepath.FromSlash(stored.Path))); err != nil || string(b) != aPNG || filepath.Dir(made.ExtractedDir) != out {
			t.Errorf("%s: %q in %+v, %v", era, b, made, err)
		}
		asks(1, map[string]any{"action": "export_resources", "paths": []string{stored.Path}, "outputPath": fmt.Sprintf("%d.zip", i)}).is("")
		asks(0, map[string]any{"action": "export_resources", "paths": []string{stored.Path}, "outputPath": fmt.Sprintf("%d.zip", i)}).is(contract.AlreadyExists)

		var sent ticket
		asks(0, map[string]any{"action": "export_resources", "paths": []string{stored.Path}}).is("")
		asks(0, map[string]any{"action": "extract_doc", "id": doc, "download": true}).into(&sent)
		resp, body := transfer(t, http.MethodGet, sent.DownloadURL, nil)
		z, err := zip.NewReader(bytes.NewReader([]byte(body)), int64(len(body)))
		if err != nil || resp.StatusCode != http.StatusOK || len(z.File) != 2 {
			t.Errorf("%s: %s, %v", era, resp.Status, err)
		}
	}
}

// answered is an answer to be looked at.
type answered struct {
	t *testing.T
	answer
}

func (a answered) is(code contract.Code) {
	a.t.Helper()
	if a.err != nil || a.code != code {
		a.t.Errorf("%v %s, want %q", a.err, a.body, code)
	}
}

func (a answered) into(v any) {
	a.t.Helper()
	a.is("")
	must(a.t, json.Unmarshal([]byte(a.body), v))
}
