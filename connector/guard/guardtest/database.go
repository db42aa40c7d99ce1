package guardtest

import (
	"context"
	"testing"

	"siyuan-broker/connector/siyuan"
)

// The database of [AddDatabase].
const (
	Database      = "20240106120000-taskavs"
	DatabaseBlock = "20240106120000-avblock" // shows it, in Beta
	DatabaseRow   = "20240106120001-rowloos" // a row of its own
	DatabaseText  = "20240106120000-keynote" // a text column
	DatabaseCount = "20240106120000-keynumb" // a number column
)

// AddDatabase makes the database of the contract's examples.
func AddDatabase(t testing.TB, w *siyuan.Writer) {
	t.Helper()
	ctx := context.Background()
	dom := `<div class="av" data-node-id="` + DatabaseBlock + `" data-type="NodeAttributeView" data-av-id="` + Database + `" data-av-type="table"></div>`
	_, err := w.AppendBlock(ctx, "20240102100200-betadoc", siyuan.DOM, dom)
	check(t, err)
	made, err := w.CreateAttributeView(ctx, Database, DatabaseBlock)
	check(t, err)
	check(t, w.AddKey(ctx, Database, DatabaseText, "Note", "text", "", ""))
	check(t, w.AddKey(ctx, Database, DatabaseCount, "Count", "number", "", ""))
	check(t, w.AddRows(ctx, made.ID, siyuan.RowsAt{Block: DatabaseBlock}, []siyuan.AvSource{
		{ID: "20240106120002-rowsrc1", ItemID: DatabaseRow, IsDetached: true, Content: "Buy paint"},
	}))
}
