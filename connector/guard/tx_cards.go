package guard

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
)

const cardsAttr = "custom-riff-decks"

// deck settles the deck of a write: "" is the built-in one, others must be there
// for the caller. SiYuan marks blocks as cards of a deck that does not exist.
func (s *Session) deck(ctx context.Context, id string) (siyuan.ID, error) {
	if id == "" || id == BuiltinDeck {
		return siyuan.BuiltinDeck, nil
	}
	all, err := s.Decks(ctx)
	if err != nil {
		return "", err
	}
	if !slices.ContainsFunc(all, func(d Deck) bool { return d.ID == id }) {
		return "", contract.Fail(contract.NotFound, "There is no deck %q.", id).WithHint("flashcard.get_decks lists them.")
	}
	return siyuan.ID(id), nil
}

// AddCards makes blocks cards of a deck and returns how many were none before.
func (tx *Tx) AddCards(ctx context.Context, deck string, blocks []Block) (settled string, changed int, err error) {
	return tx.changeCards(ctx, deck, blocks, true)
}

// RemoveCards takes blocks out of a deck and returns how many were in it.
func (tx *Tx) RemoveCards(ctx context.Context, deck string, blocks []Block) (settled string, changed int, err error) {
	return tx.changeCards(ctx, deck, blocks, false)
}

func (tx *Tx) changeCards(ctx context.Context, name string, blocks []Block, in bool) (string, int, error) {
	deck, err := tx.s.deck(ctx, name)
	if err != nil {
		return "", 0, err
	}
	st := Step{Op: "flashcard.create", ID: string(deck)}
	if !in {
		st.Op = "flashcard.remove"
	}
	var ids []siyuan.ID
	for _, b := range blocks {
		if err := tx.covers(b); err != nil {
			return "", 0, err
		}
		if b.id == b.doc.id {
			return "", 0, contract.Fail(contract.InvalidTarget, "%s is a document; only blocks in it can be cards.", b.ID()).
				WithHint("Make cards of its headings, list items or paragraphs.")
		}
		attrs, err := tx.s.g.r.BlockAttrs(ctx, b.id)
		if err != nil {
			return "", 0, tx.s.vanished(err, "block", b.id)
		}
		if slices.Contains(deckIDs(attrs[cardsAttr]), string(deck)) != in && !slices.Contains(ids, b.id) {
			ids = append(ids, b.id)
			after := maps.Clone(attrs)
			after[cardsAttr] = withDeck(attrs[cardsAttr], string(deck), in)
			st.Marks = append(st.Marks, Mark{LookAttrs, b.ID(), attrsMark(attrs), attrsMark(after)})
		}
	}
	if len(ids) == 0 {
		return string(deck), 0, nil
	}
	err = tx.step(ctx, st, func(w *siyuan.Writer) error {
		if !in {
			return w.RemoveCards(ctx, deck, ids)
		}
		_, err := w.AddCards(ctx, deck, ids)
		return err
	})
	if err != nil {
		return "", 0, err
	}
	for _, id := range ids {
		attrs, err := tx.s.g.r.BlockAttrs(ctx, id)
		if err != nil {
			return "", 0, err
		}
		if slices.Contains(deckIDs(attrs[cardsAttr]), string(deck)) != in {
			return "", 0, notPersisted("SiYuan took the change of the deck, but block %s does not show it.", string(id))
		}
	}
	return string(deck), len(ids), nil
}

// withDeck is the list of a block's decks after a change.
func withDeck(attr, deck string, in bool) string {
	ids := slices.DeleteFunc(deckIDs(attr), func(id string) bool { return id == deck })
	if in {
		ids = append(ids, deck)
	}
	return strings.Join(ids, ",")
}

// Flashcard finds a card of a readable block and proves a level at the block.
func (s *Session) Flashcard(ctx context.Context, deck, card string, need contract.Level) (Flashcard, Block, error) {
	missing := contract.Fail(contract.NotFound, "There is no card %q in the deck %q.", card, deck).WithHint("flashcard.list_cards lists them.")
	if deck == "" {
		return Flashcard{}, Block{}, missing
	}
	all, err := s.Flashcards(ctx, deck)
	if err != nil {
		return Flashcard{}, Block{}, err
	}
	i := slices.IndexFunc(all, func(c Flashcard) bool { return c.CardID == card })
	if i < 0 {
		return Flashcard{}, Block{}, missing
	}
	b, err := s.Block(ctx, all[i].ID, need)
	return all[i], b, err
}

// ReviewCard rates a card, from 1 again to 4 easy, and returns its new state.
func (tx *Tx) ReviewCard(ctx context.Context, c Flashcard, b Block, rating int) (Flashcard, error) {
	if err := tx.covers(b); err != nil {
		return c, err
	}
	st := Step{Op: "flashcard.review", ID: b.ID(), Marks: []Mark{{LookReps, c.DeckID + " " + c.CardID, strconv.Itoa(c.Reps), strconv.Itoa(c.Reps + 1)}}}
	err := tx.step(ctx, st, func(w *siyuan.Writer) error {
		return w.ReviewCard(ctx, siyuan.ID(c.DeckID), siyuan.ID(c.CardID), siyuan.Rating(rating))
	})
	if err != nil {
		return c, err
	}
	now, _, err := tx.s.Flashcard(ctx, c.DeckID, c.CardID, contract.ReadWrite)
	if err == nil && now.Reps != c.Reps+1 {
		err = notPersisted("SiYuan took the rating, but the card %s does not show it.", c.CardID)
	}
	return now, err
}

// SkipCard puts a card off to the next session, which SiYuan remembers until it
// ends, so there is nothing to read back.
func (tx *Tx) SkipCard(ctx context.Context, c Flashcard, b Block) error {
	if err := tx.covers(b); err != nil {
		return err
	}
	st := Step{Op: "flashcard.skip", ID: b.ID(), Repeatable: "a card that is put off twice is put off"}
	return tx.step(ctx, st, func(w *siyuan.Writer) error { return w.SkipCard(ctx, siyuan.ID(c.DeckID), siyuan.ID(c.CardID)) })
}

// lookAtReps is how often a card was reviewed.
func (g *Guard) lookAtReps(ctx context.Context, id string) (string, error) {
	deck, card, _ := strings.Cut(id, " ")
	for page := 1; page*cardPage <= maxCards; page++ {
		got, err := g.r.Cards(ctx, siyuan.ID(deck), page, cardPage)
		if err != nil {
			return "", err
		}
		for _, b := range got.Blocks {
			if string(b.RiffCardID) == card && b.RiffCard != nil {
				return strconv.Itoa(b.RiffCard.Reps), nil
			}
		}
		if page >= got.PageCount {
			break
		}
	}
	return "", fmt.Errorf("card %s: %w", card, siyuan.Missing)
}
