package guard

import "context"

// Intent says what a write is about to do.
type Intent struct {
	RequestID string   // the at-most-once key
	Action    string   // "tool.action"
	Targets   []Target // what is locked; a Tx writes nothing else
	Entry     Entry    // where its steps are remembered; nil where nobody asks again
	Watch     Watch    // sees the targets before and after; nil: nobody looks
}

// Target is a notebook, document or block that a write touches. A notebook is
// named for what changes its tree: creating, moving and removing documents.
type Target interface{ target() (Notebook, Block) }

func (n Notebook) target() (Notebook, Block) { return n, Block{} }
func (d Doc) target() (Notebook, Block)      { return d.nb, Block{doc: d, id: d.id} }
func (b Block) target() (Notebook, Block)    { return b.doc.nb, b }

// Step is one kernel write of an intent, with what proves later whether it
// happened. It holds ids and digests, never note text.
type Step struct {
	Op        string   `json:"op"`            // such as "block.append"
	ID        string   `json:"id,omitempty"`  // block, document or notebook written to
	New       []string `json:"new,omitempty"` // ids chosen for what is created
	Marks     []Mark   `json:"marks,omitempty"`
	More      bool     `json:"more,omitempty"`      // another step of the same call follows, or may
	Notebooks []string `json:"notebooks,omitempty"` // that the call touches; set by the Tx
	At        int64    `json:"at,omitempty"`        // Unix milliseconds of the send; set by the Tx

	// Repeatable is why the step may be done again whether it happened or not. A
	// step has either marks or this reason.
	Repeatable string `json:"repeatable,omitempty"`
}

// Mark is one thing to look at: how it was before a step, and how it is after.
// An empty side is not known and proves nothing.
type Mark struct {
	Look   Look   `json:"look"`
	ID     string `json:"id,omitempty"`
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
}

// Entry is where the steps of one request are remembered, so that a repeated
// request is not executed twice and a crash can be decided.
type Entry interface {
	// Step is called before each kernel write and returns when the step is durable.
	// An error stops the write before the kernel sees it.
	Step(ctx context.Context, s Step) error
	// Drop takes the last step back: the kernel refused it, or was never asked.
	Drop(ctx context.Context) error
}

// noEntry remembers nothing.
type noEntry struct{}

func (noEntry) Step(context.Context, Step) error { return nil }
func (noEntry) Drop(context.Context) error       { return nil }
