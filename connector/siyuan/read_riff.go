package siyuan

import "context"

// BuiltinDeck is the deck of quick cards, which DueCards means by "" and Decks
// does not list.
const BuiltinDeck ID = "20230218211946-2kw8jgx"

// Deck is a set of flashcards. Size counts cards of all notebooks.
type Deck struct {
	ID      ID     `json:"id" shape:"nonempty"`
	Name    string `json:"name"`
	Size    int    `json:"size"`
	Created string `json:"created"`
	Updated string `json:"updated"`
}

// RiffCard is the learning state that comes with a card's Block.
type RiffCard struct {
	Due        string `json:"due"` // RFC 3339
	Reps       int    `json:"reps"`
	Lapses     int    `json:"lapses"`
	State      int    `json:"state"`
	LastReview string `json:"lastReview"`
}

// DueCard is a card to review now. It names no notebook.
type DueCard struct {
	DeckID     ID                `json:"deckID" shape:"nonempty"`
	CardID     ID                `json:"cardID" shape:"nonempty"`
	BlockID    ID                `json:"blockID" shape:"nonempty"`
	Lapses     int               `json:"lapses"`
	Reps       int               `json:"reps"`
	State      int               `json:"state"`
	LastReview int64             `json:"lastReview"` // Unix milliseconds
	NextDues   map[string]string `json:"nextDues"`   // by rating 1 to 4
}

// DueCards are the cards to review now; the counts are over all of them.
type DueCards struct {
	Cards              []DueCard `json:"cards"`
	UnreviewedCount    int       `json:"unreviewedCount"`
	UnreviewedNewCount int       `json:"unreviewedNewCardCount"`
	UnreviewedOldCount int       `json:"unreviewedOldCardCount"`
}

// CardPage is a page of cards as blocks.
type CardPage struct {
	Blocks    []Block `json:"blocks" shape:"nonnull"`
	PageCount int     `json:"pageCount"`
	Total     int     `json:"total"`
}

// Decks lists the decks without the built-in one.
func (r *Reader) Decks(ctx context.Context) ([]Deck, error) {
	return read[[]Deck](ctx, r, "riff/getRiffDecks", nil, 0)
}

// Cards pages through a deck; "" is all decks.
func (r *Reader) Cards(ctx context.Context, deck ID, page, size int) (CardPage, error) {
	return read[CardPage](ctx, r, "riff/getRiffCards",
		args{"id": optional(deck), "page": page, "pageSize": size}, indexed)
}

// TreeCards pages through the built-in deck's cards of a document and those
// below it; the kernel sets the size of pages.
func (r *Reader) TreeCards(ctx context.Context, root ID, page int) (CardPage, error) {
	return read[CardPage](ctx, r, "riff/getTreeRiffCards", args{"id": root, "page": page}, indexed)
}

// NotebookCards pages through the built-in deck's cards of a notebook;
// the kernel sets the size of pages.
func (r *Reader) NotebookCards(ctx context.Context, notebook ID, page int) (CardPage, error) {
	return read[CardPage](ctx, r, "riff/getNotebookRiffCards", args{"id": notebook, "page": page}, indexed)
}

// CardsByBlocks looks up the cards of blocks. A block that is missing, or has
// its card in another deck, comes back with an empty Box.
func (r *Reader) CardsByBlocks(ctx context.Context, blocks []ID) ([]Block, error) {
	data, err := read[struct {
		Blocks []Block `json:"blocks" shape:"nonnull"`
	}](ctx, r, "riff/getRiffCardsByBlockIDs", args{"blockIDs": list(blocks)}, indexed)
	return data.Blocks, err
}

// DueCards lists the cards of a deck to review now; "" is the built-in deck, an
// unknown deck has none.
func (r *Reader) DueCards(ctx context.Context, deck ID) (DueCards, error) {
	return read[DueCards](ctx, r, "riff/getRiffDueCards", args{"deckID": optional(deck)}, indexed)
}

// TreeDueCards lists the built-in deck's due cards of a document. The kernel
// answers all due cards for an unknown document, so it is looked up first.
func (r *Reader) TreeDueCards(ctx context.Context, root ID) (DueCards, error) {
	const path = "riff/getTreeRiffDueCards"
	exists, err := r.BlockExists(ctx, root)
	if err != nil {
		return DueCards{}, err
	}
	if !exists {
		return DueCards{}, missing(path)
	}
	return read[DueCards](ctx, r, path, args{"rootID": root}, indexed)
}

// NotebookDueCards lists the built-in deck's due cards of a notebook.
func (r *Reader) NotebookDueCards(ctx context.Context, notebook ID) (DueCards, error) {
	const path = "riff/getNotebookRiffDueCards"
	due, err := read[DueCards](ctx, r, path, args{"notebook": notebook}, indexed)
	return due, r.noNotebook(ctx, path, notebook, err)
}
