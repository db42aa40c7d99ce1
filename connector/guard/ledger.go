package guard

import "context"

// Intent says what a write is about to do.
type Intent struct {
	RequestID string   // the at-most-once key
	Action    string   // "tool.action"
	Targets   []Target // what is locked; a Tx writes nothing else
}

// Target is a notebook, document or block that a write touches. A notebook is
// named for what changes its tree: creating, moving and removing documents.
type Target interface{ target() (Notebook, Block) }

func (n Notebook) target() (Notebook, Block) { return n, Block{} }
func (d Doc) target() (Notebook, Block)      { return d.nb, Block{doc: d, id: d.id} }
func (b Block) target() (Notebook, Block)    { return b.doc.nb, b }

// Step is one kernel write of an intent, with what proves later that it
// happened: the ids chosen for new things, or digests of the text before and
// after.
type Step struct {
	Op     string // such as "block.append"
	ID     string // block, document or notebook written to
	New    string // id chosen for what is created, or ""
	Before string // SHA-256 of the state before, or ""
	After  string // SHA-256 of the state intended, or ""
}

// Ledger remembers writes, so that a repeated request is not executed twice and
// a crash can be decided. Its methods return when the entry is durable; an
// error stops the write before the kernel sees it.
type Ledger interface {
	Begin(ctx context.Context, in Intent) (Entry, error)
}

// Entry is the ledger's record of one intent. It never holds note text.
type Entry interface {
	// Step is called before each kernel write.
	Step(ctx context.Context, s Step) error
	// End is called once, with the error the intent ended with.
	End(ctx context.Context, err error) error
}

// noLedger is for guards that need no memory: writes run, and nothing more.
type noLedger struct{}

func (noLedger) Begin(context.Context, Intent) (Entry, error) { return noEntry{}, nil }

type noEntry struct{}

func (noEntry) Step(context.Context, Step) error { return nil }
func (noEntry) End(context.Context, error) error { return nil }
