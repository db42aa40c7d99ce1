package siyuan

import (
	"context"
	"slices"
	"testing"
	"time"
)

func TestLiveCardsAreMadeReviewedAndReset(t *testing.T) {
	l := newLive(t)
	ctx := l.ctx
	doc := l.doc("/Cards", "front one\n\nfront two")
	kids := l.children(doc)
	deck := take(l.CreateDeck(ctx, liveName))(t)
	t.Cleanup(func() {
		if err := l.RemoveDeck(context.Background(), deck.ID); err != nil {
			t.Errorf("remove the test's deck %s: %v", deck.ID, err)
		}
	})
	equal(t, "the new deck", []any{deck.Name, deck.Size}, []any{liveName, 0})
	check(t, l.RenameDeck(ctx, deck.ID, liveName+"-renamed"))
	added := take(l.AddCards(ctx, deck.ID, kids))(t)
	equal(t, "the deck with cards", []any{added.ID, added.Size}, []any{deck.ID, 2})
	equal(t, "the block's decks", take(l.BlockAttrs(ctx, kids[0]))(t)["custom-riff-decks"], string(deck.ID))
	find := func() Deck {
		t.Helper()
		all := take(l.Decks(ctx))(t)
		i := slices.IndexFunc(all, func(d Deck) bool { return d.ID == deck.ID })
		if i < 0 {
			t.Fatal("the deck is not in the list")
		}
		return all[i]
	}
	equal(t, "the list", []any{find().Name, find().Size}, []any{liveName + "-renamed", 2})
	page := take(l.Cards(ctx, deck.ID, 1, 20))(t)
	got := blockIDs(page.Blocks)
	slices.Sort(got)
	want := slices.Sorted(slices.Values(kids))
	equal(t, "Cards", []any{page.Total, page.PageCount, got}, []any{2, 1, want})

	due := take(l.DueCards(ctx, deck.ID))(t)
	equal(t, "DueCards", []any{len(due.Cards), due.UnreviewedCount, due.UnreviewedNewCount}, []any{2, 2, 2})
	card := due.Cards[0]
	equal(t, "a new card", []any{card.DeckID, card.Reps, card.State, len(card.NextDues)}, []any{deck.ID, 0, 0, 4})
	check(t, l.SkipCard(ctx, deck.ID, due.Cards[1].CardID))
	check(t, l.ReviewCard(ctx, deck.ID, card.CardID, Easy))
	reviewed := func(id ID) *RiffCard {
		t.Helper()
		for _, b := range take(l.Cards(ctx, deck.ID, 1, 20))(t).Blocks {
			if b.ID == id {
				return b.RiffCard
			}
		}
		t.Fatal("no such card")
		return nil
	}
	equal(t, "a reviewed card", reviewed(card.BlockID).Reps, 1)
	check(t, l.ResetCards(ctx, "deck", deck.ID, deck.ID, kids))
	equal(t, "a reset card", reviewed(card.BlockID).Reps, 0)
	wantKind(t, "resetting no cards", l.ResetCards(ctx, "deck", deck.ID, deck.ID, nil), BadArgument)
	equal(t, "DueCards of nothing", len(take(l.DueCards(ctx, l.id()))(t).Cards), 0)

	// The built-in deck knows documents and notebooks.
	before := take(l.DueCards(ctx, ""))(t).UnreviewedCount
	take(l.AddCards(ctx, BuiltinDeck, kids[:1]))(t)
	equal(t, "due in the built-in deck", take(l.DueCards(ctx, ""))(t).UnreviewedCount, before+1)
	equal(t, "TreeCards", blockIDs(take(l.TreeCards(ctx, doc, 1))(t).Blocks), kids[:1])
	equal(t, "NotebookCards", blockIDs(take(l.NotebookCards(ctx, l.nb, 1))(t).Blocks), kids[:1])
	equal(t, "TreeDueCards", take(l.TreeDueCards(ctx, doc))(t).Cards[0].BlockID, kids[0])
	equal(t, "NotebookDueCards", take(l.NotebookDueCards(ctx, l.nb))(t).Cards[0].BlockID, kids[0])
	gone := l.id()
	wantKind(t, "TreeDueCards of nothing", second(l.TreeDueCards(ctx, gone)), Missing)
	wantKind(t, "NotebookDueCards of nothing", second(l.NotebookDueCards(ctx, gone)), Missing)
	byBlock := take(l.CardsByBlocks(ctx, []ID{kids[0], gone}))(t)
	equal(t, "CardsByBlocks", []any{byBlock[0].ID, byBlock[0].Box, byBlock[1].Box}, []any{kids[0], l.nb, ID("")})
	built := take(l.TreeDueCards(ctx, doc))(t).Cards[0].CardID
	check(t, l.ReviewCard(ctx, BuiltinDeck, built, Good))
	at := time.Date(2031, 2, 3, 4, 5, 6, 0, time.Local)
	check(t, l.SetCardsDue(ctx, []CardDue{{built, at.Format("20060102150405")}}))
	state := take(l.TreeCards(ctx, doc, 1))(t).Blocks[0].RiffCard
	dueAt, err := time.Parse(time.RFC3339, state.Due)
	check(t, err)
	equal(t, "a card's state", []any{state.Reps, dueAt.Equal(at)}, []any{1, true})
	check(t, l.ResetCards(ctx, "tree", doc, BuiltinDeck, nil))
	equal(t, "a reset tree", take(l.TreeCards(ctx, doc, 1))(t).Blocks[0].RiffCard.Reps, 0)

	check(t, l.RemoveCards(ctx, "", kids[:1]))
	equal(t, "after a removal", len(take(l.TreeCards(ctx, doc, 1))(t).Blocks), 0)
	check(t, l.RemoveCards(ctx, deck.ID, kids))
	check(t, l.RemoveDeck(ctx, deck.ID))
	equal(t, "a removed deck", slices.ContainsFunc(take(l.Decks(ctx))(t), func(d Deck) bool { return d.ID == deck.ID }), false)
	check(t, l.RemoveDeck(ctx, deck.ID))

	equal(t, "cards for an unknown deck", take(l.AddCards(ctx, l.id(), kids))(t), Deck{})
}
