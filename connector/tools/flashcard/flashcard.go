// Package flashcard has the handlers of the flashcard tool.
package flashcard

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/tools"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

// Bindings are the handlers of this tool.
func Bindings() []tools.Binding {
	return []tools.Binding{
		tools.Bind(catalogue.FlashcardListCards, listCards),
		tools.Bind(catalogue.FlashcardGetDecks, getDecks),
		tools.Bind(catalogue.FlashcardGetCards, getCards),
		tools.Bind(catalogue.FlashcardReviewCard, reviewCard),
		tools.Bind(catalogue.FlashcardCreateCard, createCard),
		tools.BindDangerous(catalogue.FlashcardRemoveCard, previewRemove, removeCard),
	}
}

func getDecks(ctx context.Context, r *tools.Request, _ catalogue.FlashcardGetDecksIn) (catalogue.FlashcardGetDecksOut, error) {
	out := catalogue.FlashcardGetDecksOut{Decks: []catalogue.FlashcardDeck{}}
	decks, err := r.Session.Decks(ctx)
	for _, d := range decks {
		out.Decks = append(out.Decks, catalogue.FlashcardDeck(d))
	}
	return out, err
}

// maxListed bounds a list of due cards.
const maxListed = 200

func listCards(ctx context.Context, r *tools.Request, in catalogue.FlashcardListCardsIn) (catalogue.FlashcardListCardsOut, error) {
	out := catalogue.FlashcardListCardsOut{Cards: []catalogue.Flashcard{}}
	deck, within, err := scope(ctx, r, in)
	if err != nil {
		return out, err
	}
	cards, err := r.Session.Flashcards(ctx, deck)
	if err != nil {
		return out, err
	}
	now, err := r.Session.Clock(ctx) // after the cards: a new one is due at the moment at which it is asked for
	if err != nil {
		return out, err
	}
	for _, c := range cards {
		reviewed := slices.ContainsFunc(in.ReviewedCards, func(rc catalogue.ReviewedCard) bool { return rc.CardID == c.CardID })
		if c.Due.After(now) || reviewed || !within(c) {
			continue
		}
		out.UnreviewedCount++
		if c.State == 0 {
			out.UnreviewedNewCardCount++
		} else {
			out.UnreviewedOldCardCount++
		}
		if in.Filter == "due" || (in.Filter == "new") == (c.State == 0) {
			out.Cards = append(out.Cards, show(c))
		}
	}
	shown := catalogue.Fit(out.Cards, maxListed, r.Budget, catalogue.Chars[catalogue.Flashcard])
	if out.Truncated = len(shown) < len(out.Cards); out.Truncated {
		out.Hint = fmt.Sprintf("These are the first %d of %d; review them, or narrow the scope.", len(shown), len(out.Cards))
	}
	out.Cards = shown
	return out, nil
}

// scope is the deck to read, "" for all, and which of its cards are meant. It
// proves what the arguments name.
func scope(ctx context.Context, r *tools.Request, in catalogue.FlashcardListCardsIn) (deck string, within func(guard.Flashcard) bool, err error) {
	all := func(guard.Flashcard) bool { return true }
	if deck = in.DeckID; deck == "" && in.Scope == "deck" {
		deck = guard.BuiltinDeck
	}
	switch in.Scope {
	case "notebook":
		n, err := r.Session.Notebook(in.Notebook, contract.Read)
		return deck, func(c guard.Flashcard) bool { return c.Notebook.ID() == n.ID() }, err
	case "tree":
		d, err := r.Session.Doc(ctx, in.RootID, contract.Read)
		return deck, func(c guard.Flashcard) bool { return c.RootID == d.ID() || strings.Contains(c.Path, "/"+d.ID()+"/") }, err
	}
	return deck, all, nil
}

const cardPageSize = 32

func getCards(ctx context.Context, r *tools.Request, in catalogue.FlashcardGetCardsIn) (catalogue.FlashcardGetCardsOut, error) {
	out := catalogue.FlashcardGetCardsOut{DeckID: in.DeckID, Cards: []catalogue.Flashcard{}}
	cards, err := r.Session.Flashcards(ctx, in.DeckID)
	if err != nil {
		return out, err
	}
	from, to, page := catalogue.Page(len(cards), or(in.Page, 1), or(in.PageSize, cardPageSize))
	for _, c := range cards[from:to] {
		out.Cards = append(out.Cards, show(c))
	}
	out.Cards, out.PageOut = catalogue.Shrink(out.Cards, page, r.Budget)
	return out, nil
}

func or(v *int, standard int) int {
	if v == nil {
		return standard
	}
	return *v
}

func show(c guard.Flashcard) catalogue.Flashcard {
	front, back := sides(c.Row)
	out := catalogue.Flashcard{
		DeckID: c.DeckID, CardID: c.CardID, BlockID: c.ID, State: c.State, Lapses: c.Lapses, Reps: c.Reps,
		Due: c.Due.Format(time.RFC3339), Front: front, Back: back,
	}
	if !c.LastReview.IsZero() {
		out.LastReview = c.LastReview.Format(time.RFC3339)
	}
	return out
}

var marked = regexp.MustCompile(`==([^=\n]+)==`)

const blank = "____"

// sides are what a card asks and what it hides: marked text, or all behind the
// first line of a block that has more.
func sides(r guard.Row) (front, back string) {
	var answers []string
	for _, m := range marked.FindAllStringSubmatch(r.Markdown, -1) {
		answers = append(answers, m[1])
	}
	if answers != nil {
		return marked.ReplaceAllString(r.Markdown, blank), strings.Join(answers, "; ")
	}
	front, back, _ = strings.Cut(strings.TrimSpace(r.Markdown), "\n")
	return front, strings.TrimSpace(back)
}

func reviewCard(ctx context.Context, r *tools.Request, in catalogue.FlashcardReviewCardIn) (out catalogue.FlashcardReviewCardOut, err error) {
	if in.Rating == nil && !in.Skip {
		return out, contract.InvalidFields(contract.Field{Path: "rating", Message: "is required unless skip is true"})
	}
	card, block, err := r.Session.Flashcard(ctx, in.DeckID, in.CardID, contract.ReadWrite)
	if err != nil {
		return out, err
	}
	err = r.Session.Write(ctx, r.Intent(block), func(ctx context.Context, tx *guard.Tx) (err error) {
		if in.Skip {
			return tx.SkipCard(ctx, card, block)
		}
		card, err = tx.ReviewCard(ctx, card, block, *in.Rating)
		return err
	})
	return catalogue.FlashcardReviewCardOut{DeckID: in.DeckID, CardID: in.CardID, Rating: in.Rating, Skip: in.Skip, Reps: card.Reps, Due: card.Due.Format(time.RFC3339)}, err
}

func blocks(ctx context.Context, r *tools.Request, ids []string, need contract.Level) (list []guard.Block, targets []guard.Target, err error) {
	for _, id := range ids {
		b, err := r.Session.Block(ctx, id, need)
		if err != nil {
			return nil, nil, err
		}
		list, targets = append(list, b), append(targets, b)
	}
	return list, targets, nil
}

func createCard(ctx context.Context, r *tools.Request, in catalogue.FlashcardCreateCardIn) (out catalogue.FlashcardChangeOut, err error) {
	list, targets, err := blocks(ctx, r, in.BlockIDs, contract.ReadWrite)
	if err != nil {
		return out, err
	}
	err = r.Session.Write(ctx, r.Intent(targets...), func(ctx context.Context, tx *guard.Tx) error {
		deck, n, err := tx.AddCards(ctx, in.DeckID, list)
		out = catalogue.FlashcardChangeOut{Success: true, EffectiveDeckID: deck, BlockIDs: in.BlockIDs, Changed: n}
		return err
	})
	return out, err
}

func previewRemove(ctx context.Context, r *tools.Request, in catalogue.FlashcardRemoveCardIn) (contract.Preview, error) {
	list, _, err := blocks(ctx, r, in.BlockIDs, contract.ReadWriteDelete)
	if err != nil {
		return contract.Preview{}, err
	}
	return r.Session.PreviewBlocks(ctx, list)
}

func removeCard(ctx context.Context, r *tools.Request, in catalogue.FlashcardRemoveCardIn) (out catalogue.FlashcardChangeOut, err error) {
	list, targets, err := blocks(ctx, r, in.BlockIDs, contract.ReadWriteDelete)
	if err != nil {
		return out, err
	}
	err = r.Session.Write(ctx, r.Intent(targets...), func(ctx context.Context, tx *guard.Tx) error {
		deck, n, err := tx.RemoveCards(ctx, in.DeckID, list)
		out = catalogue.FlashcardChangeOut{Success: true, EffectiveDeckID: deck, BlockIDs: in.BlockIDs, Changed: n}
		return err
	})
	return out, err
}
