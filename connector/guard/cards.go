package guard

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
)

// Flashcard is a card of a readable block, with its learning state.
type Flashcard struct {
	Row
	DeckID, CardID string
	Due            time.Time
	LastReview     time.Time // zero: never
	Reps, Lapses   int
	State          int // 0 new, 1 learning, 2 review, 3 relearning
}

// Deck is a set of flashcards. How many cards it has is not told: the kernel
// counts those of all notebooks.
type Deck struct{ ID, Name string }

// BuiltinDeck is the deck that every workspace has.
const BuiltinDeck = string(siyuan.BuiltinDeck)

// cardPage and maxCards bound what is read of a deck; cards of all notebooks
// count, because the kernel's pages are over all of them.
const (
	cardPage = 512
	maxCards = 20_000
)

// Decks lists the decks, the built-in one first. While anything is hidden from
// the caller these are only the decks of readable blocks: a name may tell what a
// deck is about.
func (s *Session) Decks(ctx context.Context) ([]Deck, error) {
	all, err := s.g.r.Decks(ctx)
	if err != nil {
		return nil, err
	}
	inUse := map[string]bool{}
	if !s.whole() && len(s.sidebar().order) > 0 {
		found, err := s.g.sql(ctx, fmt.Sprintf("SELECT DISTINCT value FROM attributes WHERE name = 'custom-riff-decks' AND box IN (%s) LIMIT %d", s.boxes(), maxCards))
		if err != nil {
			return nil, err
		}
		for _, r := range found {
			for _, id := range deckIDs(r.Text("value")) {
				inUse[id] = true
			}
		}
	}
	decks := []Deck{{BuiltinDeck, "Built-in Deck"}}
	for _, d := range all {
		if d.ID != siyuan.BuiltinDeck && (s.whole() || inUse[string(d.ID)]) {
			decks = append(decks, Deck{string(d.ID), d.Name})
		}
	}
	return decks, nil
}

func deckIDs(attr string) []string {
	return slices.DeleteFunc(strings.Split(attr, ","), func(id string) bool { return id == "" })
}

// Flashcards lists the cards of a deck whose blocks the caller may read; "" is
// all decks. A deck that is not there has none. What is due is for the caller to
// judge: the kernel's own list of due cards is cut to the person's limits over
// all notebooks, so that hidden cards would push out readable ones.
func (s *Session) Flashcards(ctx context.Context, deck string) ([]Flashcard, error) {
	decks := []string{deck}
	if deck == "" {
		all, err := s.Decks(ctx)
		if err != nil {
			return nil, err
		}
		decks = nil
		for _, d := range all {
			decks = append(decks, d.ID)
		}
	}
	var cards []Flashcard
	for _, id := range decks {
		if !siyuan.ID(id).Valid() {
			continue
		}
		of, err := s.cardsOf(ctx, siyuan.ID(id))
		if err != nil {
			return nil, err
		}
		cards = append(cards, of...)
	}
	slices.SortStableFunc(cards, func(a, b Flashcard) int {
		return cmp.Or(a.known().Compare(b.known()), strings.Compare(a.ID, b.ID), strings.Compare(a.DeckID, b.DeckID))
	})
	return cards, nil
}

// known is when a card is due, the zero time for one that was never reviewed: of
// that SiYuan says the moment at which it is asked.
func (c Flashcard) known() time.Time {
	if c.LastReview.IsZero() {
		return time.Time{}
	}
	return c.Due
}

func (s *Session) cardsOf(ctx context.Context, deck siyuan.ID) ([]Flashcard, error) {
	states := map[string]siyuan.Block{}
	var ids []string
	for page := 1; ; page++ {
		got, err := s.g.r.Cards(ctx, deck, page, cardPage)
		if err != nil {
			return nil, err
		}
		for _, b := range got.Blocks {
			if _, readable := s.sidebar().notebooks[b.Box]; readable && b.RiffCard != nil {
				states[string(b.ID)] = b
				ids = append(ids, string(b.ID))
			}
		}
		if page >= got.PageCount {
			break
		}
		if page*cardPage >= maxCards {
			return nil, contract.Fail(contract.TooLarge, "The deck has too many cards to look through.").WithHint("Ask for the cards of one notebook or document, or another deck.")
		}
	}
	rows, err := s.RowsOf(ctx, ids)
	if err != nil {
		return nil, err
	}
	cards := make([]Flashcard, 0, len(rows))
	for _, r := range rows {
		b := states[r.ID]
		cards = append(cards, Flashcard{
			Row: r, DeckID: string(deck), CardID: string(b.RiffCardID), Reps: b.RiffCard.Reps, Lapses: b.RiffCard.Lapses, State: b.RiffCard.State,
			Due: cardTime(b.RiffCard.Due), LastReview: cardTime(b.RiffCard.LastReview),
		})
	}
	return cards, nil
}

// cardTime reads a time of the kernel, in the milliseconds of its clock; what
// cannot be read is the zero time.
func cardTime(text string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return time.Time{}
	}
	return t.UTC().Truncate(time.Millisecond)
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
