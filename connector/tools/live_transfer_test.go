package tools_test

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	mathrand "math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"

	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

// sink is where a transfer's answer goes.
type sink struct {
	bytes.Buffer
	announced int64
	sum       hash.Hash // in place of keeping what comes
	n         int64
}

func (s *sink) Announce(n int64) error { s.announced = n; return nil }

func (s *sink) Write(p []byte) (int, error) {
	s.n += int64(len(p))
	if s.sum != nil {
		return s.sum.Write(p)
	}
	return s.Buffer.Write(p)
}

// carry runs a transfer.
func (d *desk) carry(g *contract.Grant, id, args string, size int64, in io.Reader, out *sink) error {
	tool, name, _ := strings.Cut(id, ".")
	if in == nil {
		in = strings.NewReader("")
	}
	return d.exec.HandleStream(context.Background(), contract.Transfer{
		Call: contract.Call{Tool: tool, Action: name, Grant: g, Args: json.RawMessage(args)}, Size: size,
	}, in, out)
}

func TestLiveFilesGoUpAndDownAndOut(t *testing.T) {
	d, g := liveDesk(t)
	nb := liveNotebook(t, d, g)
	doc := liveDoc(t, d, g, nb, "/Papers", "one\n\n# two")
	const size = 25 << 20
	content := func() io.Reader { return io.LimitReader(mathrand.NewChaCha8([32]byte{9}), size) }
	want := sha256.New()
	if _, err := io.Copy(want, content()); err != nil {
		t.Fatal(err)
	}
	sum := hex.EncodeToString(want.Sum(nil))
	args := fmt.Sprintf(`{"id":%q,"fileName":"../../conf/conf.json\u202egpj.%s","size":%d,"sha256":%q}`, doc, strings.Repeat("x", 5000), size, sum)
	var answer sink
	if err := d.carry(g, "file.upload_asset", args, contract.UnknownSize, content(), &answer); err != nil {
		t.Fatal(err)
	}
	var stored catalogue.FileUploadAssetOut
	if err := json.Unmarshal(answer.Bytes(), &stored); err != nil || stored.Size != size || stored.SHA256 != sum || !strings.HasPrefix(stored.Path, "assets/conf-json-gpj-xxx") {
		t.Fatalf("%s, %v", answer.String(), err)
	}
	t.Cleanup(func() { _ = d.Client.Writer().RemoveFile(context.Background(), "/data/"+stored.Path) })
	down := &sink{sum: sha256.New()}
	if err := d.carry(g, "file.download_asset", fmt.Sprintf(`{"path":%q}`, stored.Path), 0, nil, down); err != nil || down.announced != size || down.n != size || hex.EncodeToString(down.sum.Sum(nil)) != sum {
		t.Errorf("%d of %d bytes, %v", down.n, down.announced, err)
	}
	// The text of the note as others read it, and what it links to.
	ok[catalogue.BlockAppendOut](t, d, g, "block.append", fmt.Sprintf(`{"parentID":%q,"dataType":"markdown","data":"[papers](%s)"}`, doc, stored.Path))
	var md sink
	if err := d.carry(g, "file.export_md", fmt.Sprintf(`{"id":%q,"download":true}`, doc), 0, nil, &md); err != nil || md.String() != "one\n\n# two\n\n[papers]("+stored.Path+")\n" {
		t.Errorf("%q, %v", md.String(), err)
	}
	var packed sink
	if err := d.carry(g, "file.export_resources", fmt.Sprintf(`{"paths":[%q]}`, stored.Path), 0, nil, &packed); err != nil {
		t.Fatal(err)
	}
	z, err := zip.NewReader(bytes.NewReader(packed.Bytes()), int64(packed.Len()))
	if err != nil || len(z.File) != 1 || z.File[0].Name != stored.Path || z.File[0].UncompressedSize64 != size {
		t.Errorf("%+v, %v", z, err)
	}
}

func TestLiveAnUploadThatBreaksOffLeavesNothing(t *testing.T) {
	d, g := liveDesk(t)
	doc := liveDoc(t, d, g, liveNotebook(t, d, g), "/Papers", "one")
	names := func() string {
		entries, err := d.Client.Reader().ReadDir(context.Background(), "/data/assets")
		if err != nil {
			return err.Error()
		}
		return fmt.Sprint(entries)
	}
	before := names()
	for name, body := range map[string]io.Reader{
		"broken": io.MultiReader(strings.NewReader(strings.Repeat("x", 3<<20)), iotest.ErrReader(errors.New("gone"))),
		"short":  strings.NewReader("abc"),
	} {
		var answer sink
		err := d.carry(g, "file.upload_asset", fmt.Sprintf(`{"id":%q,"fileName":"a.bin","size":%d}`, doc, 4<<20), contract.UnknownSize, body, &answer)
		if contract.CodeOf(err) != contract.TransferInterrupted || answer.Len() != 0 || names() != before {
			t.Errorf("%s: %v %s; files %s, were %s", name, err, answer.String(), names(), before)
		}
	}
}
