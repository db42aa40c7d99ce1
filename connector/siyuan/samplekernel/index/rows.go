package index

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"html"
	"path"
	"strings"
	"unicode/utf8"

	"siyuan-broker/connector/siyuan/samplekernel/text"

	"github.com/88250/lute/ast"
	"github.com/88250/lute/parse"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// Document is one tree to index. Copies is how often its rows are written: a
// real kernel indexes a new root document twice.
type Document struct {
	Box, Path, HPath string
	Root             *ast.Node
	Copies           int
}

const blockColumns = "id, parent_id, root_id, hash, box, path, hpath, name, alias, memo, tag, content, fcontent, markdown, length, type, subtype, ial, sort, created, updated"

// ftsColumns are the indexed ones, in table order.
const ftsColumns = "name, alias, memo, tag, content, fcontent, ial"

// Put replaces all rows of a document.
func (x *Index) Put(d Document) (err error) {
	defer sqlitex.Save(x.conn)(&err)
	if err := x.remove(d.Root.ID); err != nil {
		return err
	}
	for range max(1, d.Copies) {
		for _, n := range text.Blocks(d.Root) {
			if err := x.putBlock(d, n); err != nil {
				return fmt.Errorf("index: block %s: %w", n.ID, err)
			}
		}
	}
	return nil
}

// Delete removes all rows of a document.
func (x *Index) Delete(rootID string) (err error) {
	defer sqlitex.Save(x.conn)(&err)
	return x.remove(rootID)
}

func (x *Index) remove(rootID string) error {
	type row struct {
		id   int64
		text [7]string
	}
	var rows []row
	err := sqlitex.Execute(x.conn, "SELECT rowid, "+ftsColumns+" FROM blocks WHERE root_id = ?", &sqlitex.ExecOptions{
		Args: []any{rootID},
		ResultFunc: func(s *sqlite.Stmt) error {
			r := row{id: s.ColumnInt64(0)}
			for i := range r.text {
				r.text[i] = s.ColumnText(i + 1)
			}
			rows = append(rows, r)
			return nil
		}})
	if err != nil {
		return fmt.Errorf("index: read rows of %s: %w", rootID, err)
	}
	for _, r := range rows {
		if err := x.fts(r.id, true, r.text); err != nil {
			return err
		}
	}
	for _, table := range []string{"blocks", "spans", "refs", "attributes", "assets", "file_annotation_refs"} {
		if err := x.exec("DELETE FROM "+table+" WHERE root_id = ?", rootID); err != nil {
			return err
		}
	}
	return nil
}

func (x *Index) exec(stmt string, args ...any) error {
	if err := sqlitex.Execute(x.conn, stmt, &sqlitex.ExecOptions{Args: args}); err != nil {
		return fmt.Errorf("index: %w", err)
	}
	return nil
}

// fts adds a row to the full text table or takes it out; FTS5 must be told the
// same words both times.
func (x *Index) fts(rowid int64, remove bool, columns [7]string) error {
	into, values, args := "rowid, "+ftsColumns, "?, ?, ?, ?, ?, ?, ?, ?", []any{rowid}
	if remove {
		into, values = "blocks_fts, "+into, "'delete', "+values
	}
	for _, c := range columns {
		args = append(args, spell(c))
	}
	return x.exec("INSERT INTO blocks_fts ("+into+") VALUES ("+values+")", args...)
}

func (x *Index) putBlock(d Document, n *ast.Node) error {
	parent := ""
	if n != d.Root {
		if p := text.LogicalParent(n); p != nil {
			parent = p.ID
		}
	}
	content, first, markdown := text.Content(n), text.FirstContent(n), text.Markdown(n)
	if n.Type == ast.NodeAttributeView {
		content = x.env.Database(n.AttributeViewID)
	}
	length := text.Length(n)
	if n.Type == ast.NodeAttributeView {
		length = utf8.RuneCountInString(content)
	}
	ial := x.ial(n)
	updated := n.IALAttr("updated")
	if updated == "" {
		updated = n.ID[:min(14, len(n.ID))]
	}
	name, alias, memo, tags := text.Attr(n, "name"), text.Attr(n, "alias"), text.Attr(n, "memo"), text.Tags(n)
	marks := strings.Repeat("?, ", 20) + "?"
	if err := x.exec("INSERT INTO blocks ("+blockColumns+") VALUES ("+marks+")", n.ID, parent, d.Root.ID, hash(n, content, ial),
		d.Box, d.Path, d.HPath, name, alias, memo, tags, content, first, markdown, length, text.Code(n), text.Subtype(n), ial,
		text.Rank(n), n.ID[:min(14, len(n.ID))], updated); err != nil {
		return err
	}
	if err := x.fts(x.conn.LastInsertRowID(), false, [7]string{name, alias, memo, tags, content, first, ial}); err != nil {
		return err
	}
	if err := x.putAttributes(d, n); err != nil {
		return err
	}
	return x.putInlines(d, n)
}

func hash(n *ast.Node, content, ial string) string {
	sum := sha256.Sum256([]byte(n.ID + content + ial))
	return hex.EncodeToString(sum[:])[:7]
}

// ial spells the attribute list, with the computed names of databases.
func (x *Index) ial(n *ast.Node) string {
	list := n.KramdownIAL
	if avs := n.IALAttr("custom-avs"); avs != "" {
		if names := x.env.Names(avs); names != "" {
			list = append(append([][]string{}, list...), []string{"av-names", html.EscapeString(names)})
		}
	}
	return strings.ReplaceAll(string(parse.IAL2Tokens(list)), "&#34;", "&quot;")
}

func (x *Index) putAttributes(d Document, n *ast.Node) error {
	for _, kv := range n.KramdownIAL {
		switch k := kv[0]; {
		case k == "name", k == "alias", k == "memo", k == "bookmark", strings.HasPrefix(k, "custom-"):
			if err := x.exec("INSERT INTO attributes (id, name, value, type, block_id, root_id, box, path) VALUES (?, ?, ?, 'b', ?, ?, ?, ?)",
				x.env.NewID(), k, text.UnescapeAttr(kv[1]), n.ID, d.Root.ID, d.Box, d.Path); err != nil {
				return err
			}
		}
	}
	return nil
}

// putInlines writes spans, references and assets of the marks directly in n.
func (x *Index) putInlines(d Document, n *ast.Node) (err error) {
	for c := n.FirstChild; c != nil && err == nil; c = c.Next {
		ast.Walk(c, func(m *ast.Node, entering bool) ast.WalkStatus {
			if !entering || err != nil {
				return ast.WalkContinue
			}
			if m.ID != "" && m.IsBlock() {
				return ast.WalkSkipChildren
			}
			switch m.Type {
			case ast.NodeTextMark:
				err = x.putMark(d, n, m)
			case ast.NodeImage:
				err = x.putImage(d, n, m)
			}
			return ast.WalkContinue
		})
	}
	return err
}

func (x *Index) putMark(d Document, block, m *ast.Node) error {
	content := strings.Trim(text.MarkText(m), "#")
	markdown := text.Markdown(m)
	if err := x.exec("INSERT INTO spans (id, block_id, root_id, box, path, content, markdown, type, ial) VALUES (?, ?, ?, ?, ?, ?, ?, ?, '')",
		x.env.NewID(), block.ID, d.Root.ID, d.Box, d.Path, content, markdown, "textmark "+m.TextMarkType); err != nil {
		return err
	}
	if m.IsTextMarkType("a") && strings.HasPrefix(m.TextMarkAHref, "assets/") {
		if err := x.putAsset(d, block, m.TextMarkAHref, m.TextMarkATitle); err != nil {
			return err
		}
	}
	if !m.IsTextMarkType("block-ref") || m.TextMarkBlockRefID == "" {
		return nil
	}
	def, _ := x.env.Definition(m.TextMarkBlockRefID)
	return x.exec("INSERT INTO refs (id, def_block_id, def_block_parent_id, def_block_root_id, def_block_path, block_id, root_id, box, path, content, markdown, type) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'textmark')",
		x.env.NewID(), m.TextMarkBlockRefID, def.ParentID, def.RootID, def.Path, block.ID, d.Root.ID, d.Box, d.Path, content, markdown)
}

func (x *Index) putImage(d Document, block, img *ast.Node) error {
	part := func(t ast.NodeType) string {
		if c := img.ChildByType(t); c != nil {
			return string(c.Tokens)
		}
		return ""
	}
	dest, title := part(ast.NodeLinkDest), part(ast.NodeLinkTitle)
	if err := x.exec("INSERT INTO spans (id, block_id, root_id, box, path, content, markdown, type, ial) VALUES (?, ?, ?, ?, ?, ?, ?, 'img', '')",
		x.env.NewID(), block.ID, d.Root.ID, d.Box, d.Path, part(ast.NodeLinkText), text.Markdown(img)); err != nil {
		return err
	}
	if !strings.HasPrefix(dest, "assets/") {
		return nil
	}
	return x.putAsset(d, block, dest, title)
}

func (x *Index) putAsset(d Document, block *ast.Node, dest, title string) error {
	return x.exec("INSERT INTO assets (id, block_id, root_id, box, docpath, path, name, title, hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
		x.env.NewID(), block.ID, d.Root.ID, d.Box, d.Path, dest, path.Base(dest), title, x.env.AssetHash(dest))
}
