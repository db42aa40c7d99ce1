package siyuan

import (
	"context"
	"errors"
)

// BlockInfo says where a block is. It comes from the block tree and is current
// at once, unlike SQL.
type BlockInfo struct {
	Box       ID     `json:"box" shape:"nonempty"`
	Path      string `json:"path" shape:"nonempty"`
	RootID    ID     `json:"rootID" shape:"nonempty"`
	RootIcon  string `json:"rootIcon"`
	RootTitle string `json:"rootTitle"`

	RootTitleEmpty bool `json:"rootTitleEmpty"`
}

// BlockInfo finds the notebook and document of a block. A block that does not
// exist is Missing; one in a notebook that was just closed may be Indexing.
func (r *Reader) BlockInfo(ctx context.Context, id ID) (BlockInfo, error) {
	return readAt[BlockInfo](ctx, r, "block/getBlockInfo", id, args{"id": id}, 0)
}

// BlockExists reports whether the block is in an open notebook.
func (r *Reader) BlockExists(ctx context.Context, id ID) (bool, error) {
	return read[bool](ctx, r, "block/checkBlockExist", args{"id": id}, 0)
}

// BlocksExist is BlockExists of many.
func (r *Reader) BlocksExist(ctx context.Context, ids []ID) (map[ID]bool, error) {
	return read[map[ID]bool](ctx, r, "block/checkBlocksExist", args{"ids": list(ids)}, 0)
}

// KramdownMode chooses how inline marks are written.
type KramdownMode string

// The modes of BlockKramdown.
const (
	KramdownMarkdown KramdownMode = "md"       // **strong**
	KramdownTextmark KramdownMode = "textmark" // <span data-type="strong">
)

// BlockKramdown is the block with its attribute lists; of a document, all its
// blocks and the document's attributes at the end. The order inside {: } is
// random. Dynamic anchors show titles of other notebooks. An absent block is
// Missing.
func (r *Reader) BlockKramdown(ctx context.Context, id ID, mode KramdownMode) (string, error) {
	const path = "block/getBlockKramdown"
	data, err := readAt[struct {
		ID       ID     `json:"id" shape:"nonempty"`
		Kramdown string `json:"kramdown"`
	}](ctx, r, path, id, args{"id": id, "mode": mode}, 0)
	if err == nil && data.Kramdown == "" {
		return "", missing(path)
	}
	return data.Kramdown, err
}

// BlockKramdowns is BlockKramdown of many; absent blocks are left out.
func (r *Reader) BlockKramdowns(ctx context.Context, ids []ID, mode KramdownMode) (map[ID]string, error) {
	all, err := read[map[ID]string](ctx, r, "block/getBlockKramdowns", args{"ids": list(ids), "mode": mode}, 0)
	return nonempty(all), err
}

// ChildBlock is a direct child, in document order.
type ChildBlock struct {
	ID       ID     `json:"id" shape:"nonempty"`
	Type     string `json:"type" shape:"nonempty"` // short: p, h, l, i, ...
	SubType  string `json:"subType"`
	Content  string `json:"content"`
	Markdown string `json:"markdown"` // without attributes
}

// ChildBlocks lists the children of a container, or the section below a
// heading. A leaf and a missing block both have none.
func (r *Reader) ChildBlocks(ctx context.Context, id ID) ([]ChildBlock, error) {
	return readAt[[]ChildBlock](ctx, r, "block/getChildBlocks", id, args{"id": id}, 0)
}

// TailChildBlocks lists the last n children, the last first.
func (r *Reader) TailChildBlocks(ctx context.Context, id ID, n int) ([]ChildBlock, error) {
	return readAt[[]ChildBlock](ctx, r, "block/getTailChildBlocks", id, args{"id": id, "n": n}, 0)
}

// BlockDOM is the block as the editor's HTML; an absent block is Missing.
func (r *Reader) BlockDOM(ctx context.Context, id ID) (string, error) {
	const path = "block/getBlockDOM"
	data, err := readAt[struct {
		ID  ID     `json:"id" shape:"nonempty"`
		DOM string `json:"dom"`
	}](ctx, r, path, id, args{"id": id}, 0)
	if err == nil && data.DOM == "" {
		return "", missing(path)
	}
	return data.DOM, err
}

// BlockDOMs is BlockDOM of many; absent blocks are left out.
func (r *Reader) BlockDOMs(ctx context.Context, ids []ID) (map[ID]string, error) {
	all, err := read[map[ID]string](ctx, r, "block/getBlockDOMs", args{"ids": list(ids)}, 0)
	return nonempty(all), err
}

func nonempty(all map[ID]string) map[ID]string {
	for id, text := range all {
		if text == "" {
			delete(all, id)
		}
	}
	return all
}

// Breadcrumb leads from the document to the block; an absent block is Missing.
func (r *Reader) Breadcrumb(ctx context.Context, id ID) ([]Crumb, error) {
	const path = "block/getBlockBreadcrumb"
	crumbs, err := readAt[[]Crumb](ctx, r, path, id, args{"id": id, "excludeTypes": []string{}}, 0)
	if err == nil && len(crumbs) == 0 {
		return nil, missing(path)
	}
	return crumbs, err
}

// TreeInfo is a block's place among its relatives.
type TreeInfo struct {
	ID           ID     `json:"id" shape:"nonempty"`
	Type         string `json:"type" shape:"nonempty"` // NodeParagraph, ...
	ParentID     ID     `json:"parentID"`
	ParentType   string `json:"parentType"`
	PreviousID   ID     `json:"previousID"`
	PreviousType string `json:"previousType"`
	NextID       ID     `json:"nextID"`
	NextType     string `json:"nextType"`
}

// BlockTreeInfos looks up many blocks; absent ones are left out.
func (r *Reader) BlockTreeInfos(ctx context.Context, ids []ID) (map[ID]TreeInfo, error) {
	return read[map[ID]TreeInfo](ctx, r, "block/getBlockTreeInfos", args{"ids": list(ids)}, 0)
}

// DocInfo describes the document of a block. RefCount and RefIDs are over all
// notebooks.
type DocInfo struct {
	ID           ID     `json:"id" shape:"nonempty"` // the block asked for
	RootID       ID     `json:"rootID" shape:"nonempty"`
	Name         string `json:"name"`
	RefCount     int    `json:"refCount"`
	SubFileCount int    `json:"subFileCount"`
	RefIDs       []ID   `json:"refIDs"`
	IAL          Attrs  `json:"ial" shape:"nonnull"`
	Icon         string `json:"icon"`
	AttrViews    []struct {
		ID   ID     `json:"id"`
		Name string `json:"name"`
	} `json:"attrViews"`
}

// DocInfo describes the document that the block is in.
func (r *Reader) DocInfo(ctx context.Context, id ID) (DocInfo, error) {
	return readAt[DocInfo](ctx, r, "block/getDocInfo", id, args{"id": id}, indexed)
}

// DocsInfo is DocInfo of many, with reference counts and databases. Absent ones
// are left out, also when all are absent.
func (r *Reader) DocsInfo(ctx context.Context, ids []ID) ([]DocInfo, error) {
	infos, err := read[[]DocInfo](ctx, r, "block/getDocsInfo",
		args{"ids": list(ids), "refCount": true, "av": true}, indexed)
	if !errors.Is(err, Rejected) {
		return infos, err
	}
	exist, probeErr := r.BlocksExist(ctx, ids)
	if probeErr != nil {
		return nil, err
	}
	for _, there := range exist {
		if there {
			return nil, err
		}
	}
	return nil, nil
}

// RefDef is a citing block with the blocks it cites.
type RefDef struct {
	RefID  ID   `json:"refID" shape:"nonempty"`
	DefIDs []ID `json:"defIDs"`
}

// RefIDs lists the blocks that cite the block, over all notebooks.
func (r *Reader) RefIDs(ctx context.Context, id ID) ([]RefDef, error) {
	data, err := readAt[struct {
		RefDefs []RefDef `json:"refDefs" shape:"nonnull"`
	}](ctx, r, "block/getRefIDs", id, args{"id": id}, indexed)
	return data.RefDefs, err
}

type statAnswer struct {
	Stat *Stat `json:"stat"`
}

func (a statAnswer) unwrap(path string, err error) (Stat, error) {
	switch {
	case err != nil:
		return Stat{}, err
	case a.Stat == nil:
		return Stat{}, missing(path)
	}
	return *a.Stat, nil
}

// WordCount sums up the text of the blocks.
func (r *Reader) WordCount(ctx context.Context, ids []ID) (Stat, error) {
	const path = "block/getBlocksWordCount"
	data, err := read[statAnswer](ctx, r, path, args{"ids": list(ids)}, 0)
	return data.unwrap(path, err)
}

// TreeStat sums up a whole document; an absent one is Missing.
func (r *Reader) TreeStat(ctx context.Context, id ID) (Stat, error) {
	const path = "block/getTreeStat"
	data, err := readAt[statAnswer](ctx, r, path, id, args{"id": id}, 0)
	return data.unwrap(path, err)
}

// RecentUpdated lists the 16 paragraphs and documents of all notebooks that
// were changed last.
func (r *Reader) RecentUpdated(ctx context.Context) ([]Block, error) {
	return read[[]Block](ctx, r, "block/getRecentUpdatedBlocks", nil, indexed)
}

// HeadingChildren are the ids of a heading's section; none for other blocks.
func (r *Reader) HeadingChildren(ctx context.Context, id ID) ([]ID, error) {
	return readAt[[]ID](ctx, r, "block/getHeadingChildrenIDs", id, args{"id": id}, nullable)
}

// SpinBlockDOM passes DOM through the editor's normalisation.
func (r *Reader) SpinBlockDOM(ctx context.Context, dom string) (string, error) {
	data, err := read[struct {
		DOM string `json:"dom"`
	}](ctx, r, "lute/spinBlockDOM", args{"dom": dom}, direct)
	return data.DOM, err
}

// BlockAttrs are the attributes of a block. Every block has an id among them,
// so an empty answer is Missing. "av-names" is computed HTML.
func (r *Reader) BlockAttrs(ctx context.Context, id ID) (Attrs, error) {
	const path = "attr/getBlockAttrs"
	attrs, err := readAt[Attrs](ctx, r, path, id, args{"id": id}, 0)
	if err == nil && attrs["id"] == "" {
		return nil, missing(path)
	}
	return attrs, err
}

// BlocksAttrs is BlockAttrs of many; absent blocks are left out.
func (r *Reader) BlocksAttrs(ctx context.Context, ids []ID) (map[ID]Attrs, error) {
	return read[map[ID]Attrs](ctx, r, "attr/batchGetBlockAttrs", args{"ids": list(ids)}, 0)
}
