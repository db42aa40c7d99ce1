package guard

import (
	"context"
	"fmt"
	"slices"

	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
)

// DueCard is a flashcard to review now, with the block it shows.
type DueCard struct {
	Row
	DeckID, CardID string
	Reps, Lapses   int
	State          int               // 0 new, 1 learning, 2 review, 3 relearning
	NextDues       map[string]string // by rating 1 to 4, for people
}

// Deck is a set of flashcards. How many cards it has is not told: the kernel
// counts those of all notebooks.
type Deck struct{ ID, Name string }

// Decks lists the decks; the built-in one is not among them.
func (s *Session) Decks(ctx context.Context) ([]Deck, error) {
	all, err := s.g.r.Decks(ctx)
	var decks []Deck
	for _, d := range all {
		decks = append(decks, Deck{string(d.ID), d.Name})
	}
	return decks, err
}

// DueCards lists the cards of a deck to review now, in the kernel's order; "" is
// the built-in deck.
func (s *Session) DueCards(ctx context.Context, deck string) ([]DueCard, error) {
	if deck != "" && !siyuan.ID(deck).Valid() {
		return nil, notFound("deck", siyuan.ID(deck))
	}
	due, err := s.g.r.DueCards(ctx, siyuan.ID(deck))
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, c := range due.Cards {
		ids = append(ids, string(c.BlockID))
	}
	rows, err := s.RowsOf(ctx, ids)
	if err != nil {
		return nil, err
	}
	byID := make(map[string]Row, len(rows))
	for _, r := range rows {
		byID[r.ID] = r
	}
	var cards []DueCard
	for _, c := range due.Cards {
		if r, ok := byID[string(c.BlockID)]; ok {
			cards = append(cards, DueCard{Row: r, DeckID: string(c.DeckID), CardID: string(c.CardID), Reps: c.Reps, Lapses: c.Lapses, State: c.State, NextDues: c.NextDues})
		}
	}
	return cards, nil
}

// Cards lists the blocks that are cards, of one deck or "" for all, at most
// limit. It comes from the blocks' own attributes, because the kernel's pages
// and totals are over all notebooks.
func (s *Session) Cards(ctx context.Context, deck string, limit int) ([]Row, error) {
	if len(s.order) == 0 {
		return nil, nil
	}
	condition := ""
	if deck != "" {
		if !siyuan.ID(deck).Valid() {
			return nil, notFound("deck", siyuan.ID(deck))
		}
		condition = " AND " + contains("value", deck)
	}
	found, err := s.g.sql(ctx, fmt.Sprintf("SELECT block_id FROM attributes WHERE name = 'custom-riff-decks' AND box IN (%s)%s ORDER BY block_id LIMIT %d", s.boxes(), condition, limit))
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, r := range found {
		ids = append(ids, r.Text("block_id"))
	}
	return s.RowsOf(ctx, ids)
}

// Link is a reference between two readable blocks.
type Link struct{ From, To string }

// Graph is the readable blocks around a block, and the references among them.
type Graph struct {
	Nodes []Row
	Links []Link
}

// Graph shows what a block cites and what cites it. It comes from the index and
// not from the kernel's graph, which shows all notebooks, counts over all of
// them, and stores what it is asked as the user's setting.
func (s *Session) Graph(ctx context.Context, b Block) (Graph, error) {
	if err := s.use(b.doc.nb, contract.Read); err != nil {
		return Graph{}, err
	}
	id := quoteSQL(string(b.id))
	found, err := s.refRows(ctx, "(block_id = "+id+" OR root_id = "+id+" OR def_block_id = "+id+" OR def_block_root_id = "+id+")")
	if err != nil {
		return Graph{}, err
	}
	ids := []string{b.ID()}
	for _, r := range found {
		ids = append(ids, r.Text("block_id"), r.Text("def_block_id"))
	}
	g := Graph{}
	if g.Nodes, err = s.RowsOf(ctx, ids); err != nil {
		return Graph{}, err
	}
	known := func(id string) bool { return slices.ContainsFunc(g.Nodes, func(r Row) bool { return r.ID == id }) }
	for _, r := range found {
		if l := (Link{r.Text("block_id"), r.Text("def_block_id")}); known(l.From) && known(l.To) && !slices.Contains(g.Links, l) {
			g.Links = append(g.Links, l)
		}
	}
	return g, nil
}
