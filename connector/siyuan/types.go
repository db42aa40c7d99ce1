package siyuan

import "encoding/json"

// Block is a row of search results, backlinks, bookmarks and card lists. Its
// text fields are as the kernel gives them: Content of a search hit is HTML
// with <mark>, names may hold entities.
type Block struct {
	Box      ID     `json:"box"` // "" in stubs of missing blocks
	Path     string `json:"path"`
	HPath    string `json:"hPath"` // of a document hit: its parent, with a trailing slash
	ID       ID     `json:"id" shape:"nonempty"`
	RootID   ID     `json:"rootID"`
	ParentID ID     `json:"parentID"`
	Name     string `json:"name"`
	Alias    string `json:"alias"`
	Memo     string `json:"memo"`
	Tag      string `json:"tag"`
	Content  string `json:"content"`
	FContent string `json:"fcontent"`
	Markdown string `json:"markdown"`
	Folded   bool   `json:"folded"`
	Type     string `json:"type"` // NodeParagraph, NodeDocument, ...
	SubType  string `json:"subType"`
	RefText  string `json:"refText"`
	DefID    ID     `json:"defID"`
	DefPath  string `json:"defPath"`
	IAL      Attrs  `json:"ial"`
	// Children are nested rows: headings of an outline, blocks of a document in
	// grouped search.
	Children   []Block   `json:"children"`
	Depth      int       `json:"depth"`
	Count      int       `json:"count"`
	RefCount   int       `json:"refCount"` // over all notebooks
	Sort       int       `json:"sort"`
	Created    string    `json:"created"` // yyyyMMddHHmmss, local time
	Updated    string    `json:"updated"`
	RiffCardID ID        `json:"riffCardID"`
	RiffCard   *RiffCard `json:"riffCard"`
}

// Attrs are block attributes by name, values unescaped.
type Attrs map[string]string

// Path is an entry of an outline or of a list of citing documents.
type Path struct {
	ID       ID      `json:"id" shape:"nonempty"`
	Box      ID      `json:"box"`
	Name     string  `json:"name"` // outline: HTML with &nbsp; for spaces
	HPath    string  `json:"hPath"`
	Type     string  `json:"type"`
	NodeType string  `json:"nodeType"`
	SubType  string  `json:"subType"`
	Blocks   []Block `json:"blocks"`
	Children []Path  `json:"children"`
	Depth    int     `json:"depth"`
	Count    int     `json:"count"`
	Folded   bool    `json:"folded"`
	Updated  string  `json:"updated"`
	Created  string  `json:"created"`
}

// Crumb is one step of a breadcrumb. The first step of a breadcrumb is the
// document, named "Notebook/hpath".
type Crumb struct {
	ID      ID     `json:"id"`
	Name    string `json:"name"`
	Type    string `json:"type"`
	SubType string `json:"subType"`
}

// Stat counts what a text is made of.
type Stat struct {
	RuneCount  int `json:"runeCount"`
	WordCount  int `json:"wordCount"`
	LinkCount  int `json:"linkCount"`
	ImageCount int `json:"imageCount"`
	RefCount   int `json:"refCount"`
	BlockCount int `json:"blockCount"`
}

// Row is one row of an SQL result by column. The kernel does not keep the order
// of columns, and of two columns of one name only the last survives.
type Row map[string]json.RawMessage

// Text is a column's value as text: "" when it is NULL, absent or not text.
func (r Row) Text(column string) string {
	var s string
	_ = json.Unmarshal(r[column], &s)
	return s
}

// Int is a column's value as a number: 0 when it is NULL, absent or no integer.
func (r Row) Int(column string) int64 {
	var n int64
	_ = json.Unmarshal(r[column], &n)
	return n
}

// Op is one operation of a transaction. In requests only the fields that the
// action needs are sent; answers carry all.
type Op struct {
	Action          string `json:"action" shape:"nonempty"`
	Data            any    `json:"data,omitempty"`
	ID              ID     `json:"id,omitempty"`
	RootID          ID     `json:"rootID,omitempty"`
	ParentID        ID     `json:"parentID,omitempty"`
	PreviousID      ID     `json:"previousID,omitempty"`
	NextID          ID     `json:"nextID,omitempty"`
	RetData         any    `json:"retData,omitempty"`
	BlockIDs        []ID   `json:"blockIDs,omitempty"`
	BlockID         ID     `json:"blockID,omitempty"`
	DeckID          ID     `json:"deckID,omitempty"`
	AvID            ID     `json:"avID,omitempty"`
	SrcIDs          []ID   `json:"srcIDs,omitempty"`
	Srcs            []any  `json:"srcs,omitempty"`
	IsDetached      bool   `json:"isDetached,omitempty"`
	Name            string `json:"name,omitempty"`
	Type            string `json:"type,omitempty"`
	Format          string `json:"format,omitempty"`
	KeyID           ID     `json:"keyID,omitempty"`
	RowID           ID     `json:"rowID,omitempty"`
	IsTwoWay        bool   `json:"isTwoWay,omitempty"`
	BackRelationKey ID     `json:"backRelationKeyID,omitempty"`
	RemoveDest      bool   `json:"removeDest,omitempty"`
	Layout          string `json:"layout,omitempty"`
	GroupID         ID     `json:"groupID,omitempty"`
	TargetGroupID   ID     `json:"targetGroupID,omitempty"`
	ViewID          ID     `json:"viewID,omitempty"`
	IgnoreDefault   bool   `json:"ignoreDefaultFill,omitempty"`
	Context         any    `json:"context,omitempty"`
}

// Tx is a list of operations that are done together, and their reversal.
type Tx struct {
	Timestamp int64 `json:"timestamp"`
	Do        []Op  `json:"doOperations" shape:"nonnull"`
	Undo      []Op  `json:"undoOperations"`
}

// Ops are the operations of all transactions in order.
func Ops(txs []Tx) []Op {
	var ops []Op
	for _, tx := range txs {
		ops = append(ops, tx.Do...)
	}
	return ops
}
