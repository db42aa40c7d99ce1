package siyuan

import "context"

// Rating is how well a card was known.
type Rating int

// The ratings of ReviewCard.
const (
	Again Rating = iota + 1
	Hard
	Good
	Easy
)

// CreateDeck makes a deck.
func (w *Writer) CreateDeck(ctx context.Context, name string) (Deck, error) {
	return write[Deck](ctx, w, "riff/createRiffDeck", args{"name": name}, 0)
}

// RenameDeck renames a deck.
func (w *Writer) RenameDeck(ctx context.Context, deck ID, name string) error {
	return exec(ctx, w, "riff/renameRiffDeck", args{"deckID": deck, "name": name}, 0)
}

// RemoveDeck removes a deck; an unknown one is not an error.
func (w *Writer) RemoveDeck(ctx context.Context, deck ID) error {
	return exec(ctx, w, "riff/removeRiffDeck", args{"deckID": deck}, 0)
}

// AddCards makes cards of blocks. Missing blocks are counted too. An unknown deck
// is answered null, the zero Deck: the blocks were marked as its cards all the
// same.
func (w *Writer) AddCards(ctx context.Context, deck ID, blocks []ID) (Deck, error) {
	return write[Deck](ctx, w, "riff/addRiffCards", args{"deckID": deck, "blockIDs": list(blocks)}, nullable)
}

// RemoveCards removes the cards of blocks from a deck; "" is all decks.
func (w *Writer) RemoveCards(ctx context.Context, deck ID, blocks []ID) error {
	return exec(ctx, w, "riff/removeRiffCards", args{"deckID": optional(deck), "blockIDs": list(blocks)}, 0)
}

// ReviewCard rates a card. An unknown card or deck is not an error.
func (w *Writer) ReviewCard(ctx context.Context, deck, card ID, rating Rating) error {
	return exec(ctx, w, "riff/reviewRiffCard", args{"deckID": deck, "cardID": card, "rating": rating}, 0)
}

// SkipCard puts a card off to the next session.
func (w *Writer) SkipCard(ctx context.Context, deck, card ID) error {
	return exec(ctx, w, "riff/skipReviewRiffCard", args{"deckID": deck, "cardID": card}, 0)
}

// CardDue is the new due time of a card.
type CardDue struct {
	ID  ID     `json:"id"`  // of the card
	Due string `json:"due"` // yyyyMMddHHmmss, local time
}

// SetCardsDue sets when cards of the built-in deck are due; others are ignored.
func (w *Writer) SetCardsDue(ctx context.Context, dues []CardDue) error {
	return exec(ctx, w, "riff/batchSetRiffCardsDueTime", args{"cardDues": list(dues)}, 0)
}

// ResetCards forgets what was learned: kind is notebook, tree or deck, id the
// one meant, blocks the cards. With none all cards of a notebook or tree are
// meant; of a deck the kernel then resets nothing, so blocks must be given.
func (w *Writer) ResetCards(ctx context.Context, kind string, id, deck ID, blocks []ID) error {
	const path = "riff/resetRiffCards"
	if kind == "deck" && len(blocks) == 0 {
		return badArgument(path, "no blocks to reset")
	}
	return exec(ctx, w, path, args{
		"type": kind, "id": id, "deckID": deck, "blockIDs": list(blocks),
	}, 0)
}
