package tools

import "siyuan-broker/contract"

// FlashcardListCardsIn is the input of flashcard.list_cards.
type FlashcardListCardsIn struct {
	Scope         string         `json:"scope" enum:"all|deck|notebook|tree" doc:"Where to look."`
	Filter        string         `json:"filter" enum:"due|new|old" doc:"All that are due, or only those never or already reviewed."`
	DeckID        string         `json:"deckID,omitempty" doc:"Deck id; \"\" is the built-in one." maxlen:"22"`
	Notebook      string         `json:"notebook,omitempty" ref:"notebook" doc:"For scope notebook."`
	RootID        string         `json:"rootID,omitempty" ref:"doc" doc:"Document; for scope tree, with those below."`
	ReviewedCards []ReviewedCard `json:"reviewedCards,omitempty" legacy:"true" maxlen:"512" doc:"Left out of the list."`
}

// ReviewedCard is a card that was reviewed already.
type ReviewedCard struct {
	CardID string `json:"cardID" maxlen:"22"`
}

// Flashcard is a card with its learning state. Times are RFC 3339.
type Flashcard struct {
	DeckID     string `json:"deckID"`
	CardID     string `json:"cardID"`
	BlockID    string `json:"blockID"` // the note that the card shows
	State      int    `json:"state"`   // 0 new, 1 learning, 2 review, 3 relearning
	Lapses     int    `json:"lapses"`
	Reps       int    `json:"reps"`
	Due        string `json:"due"`
	LastReview string `json:"lastReview,omitempty"`
	Front      string `json:"front"`          // ____ in place of ==marked== text
	Back       string `json:"back,omitempty"` // the marked text, or what follows the first line
}

// FlashcardListCardsOut is the output of flashcard.list_cards. The counts are of
// all due cards that the caller may read, whatever the filter.
type FlashcardListCardsOut struct {
	Cards                  []Flashcard `json:"cards"`
	UnreviewedCount        int         `json:"unreviewedCount"`
	UnreviewedNewCardCount int         `json:"unreviewedNewCardCount"`
	UnreviewedOldCardCount int         `json:"unreviewedOldCardCount"`
	CutOut
}

// FlashcardGetDecksIn is the input of flashcard.get_decks.
type FlashcardGetDecksIn struct{}

// FlashcardDeck is a set of cards.
type FlashcardDeck struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// FlashcardGetDecksOut is the output of flashcard.get_decks: the built-in deck
// first.
type FlashcardGetDecksOut struct {
	Decks []FlashcardDeck `json:"decks"`
}

// FlashcardGetCardsIn is the input of flashcard.get_cards.
type FlashcardGetCardsIn struct {
	DeckID   string `json:"deckID" doc:"Deck id; \"\" is all." maxlen:"22"`
	Page     *int   `json:"page,omitempty" min:"1" max:"1000000" doc:"From 1."`
	PageSize *int   `json:"pageSize,omitempty" min:"1" max:"512" doc:"Default 32."`
}

// FlashcardGetCardsOut is the output of flashcard.get_cards.
type FlashcardGetCardsOut struct {
	DeckID string      `json:"deckID"`
	Cards  []Flashcard `json:"cards"`
	PageOut
}

// FlashcardReviewCardIn is the input of flashcard.review_card.
type FlashcardReviewCardIn struct {
	DeckID        string         `json:"deckID" doc:"Deck id." minlen:"1" maxlen:"22"`
	CardID        string         `json:"cardID" doc:"Card, from a list." minlen:"1" maxlen:"22"`
	Rating        *int           `json:"rating,omitempty" min:"1" max:"4" doc:"1 again, 2 hard, 3 good, 4 easy."`
	Skip          bool           `json:"skip,omitempty" doc:"true puts it off instead."`
	ReviewedCards []ReviewedCard `json:"reviewedCards,omitempty" legacy:"true" maxlen:"512" doc:"Left out of the list."`
}

// FlashcardReviewCardOut is the output of flashcard.review_card.
type FlashcardReviewCardOut struct {
	DeckID string `json:"deckID"`
	CardID string `json:"cardID"`
	Rating *int   `json:"rating,omitempty"`
	Skip   bool   `json:"skip,omitempty"`
	Reps   int    `json:"reps"`
	Due    string `json:"due"`
}

// FlashcardCreateCardIn is the input of flashcard.create_card.
type FlashcardCreateCardIn struct {
	DeckID   string   `json:"deckID" doc:"Deck id; \"\" is the built-in one." maxlen:"22"`
	BlockIDs []string `json:"blockIDs" ref:"block" minlen:"1" maxlen:"64" doc:"Blocks that are shown as cards, not documents."`
	Mode     string   `json:"mode,omitempty" legacy:"true" enum:"full|attach" doc:"Not used."`
}

// FlashcardRemoveCardIn is the input of flashcard.remove_card.
type FlashcardRemoveCardIn struct {
	DeckID   string   `json:"deckID" doc:"Deck id; \"\" is the built-in one." maxlen:"22"`
	BlockIDs []string `json:"blockIDs" ref:"block" minlen:"1" maxlen:"64" doc:"Blocks that are shown as cards, not documents."`
}

// FlashcardChangeOut is the output of flashcard.create_card and remove_card.
type FlashcardChangeOut struct {
	Success         bool     `json:"success"`
	EffectiveDeckID string   `json:"effectiveDeckID"`
	BlockIDs        []string `json:"blockIDs"`
	Changed         int      `json:"changed"` // blocks that were not cards, or were
}

var cardBlock = map[string]string{"blockID": "blockIDs"}

// The actions of the flashcard tool.
var (
	FlashcardListCards = define[FlashcardListCardsIn, FlashcardListCardsOut](Action{
		Name: "list_cards", Kind: Read, Level: contract.Read, Scope: ScopeTargets,
		Summary: "List the cards to review now, with what they ask.",
		Rules: []Rule{Needs("scope", "deck", "deckID"), Needs("scope", "notebook", "notebook"), Needs("scope", "tree", "rootID"),
			NotWith("scope", "all", "notebook", "rootID")},
		Guidance: []string{"The person's limits of cards a day are not applied."},
		Examples: []string{`{"scope":"all","filter":"due"}`, `{"scope":"tree","filter":"due","rootID":"20240102100100-alphadc"}`},
	})
	FlashcardGetDecks = define[FlashcardGetDecksIn, FlashcardGetDecksOut](Action{
		Name: "get_decks", Kind: Read, Level: contract.Read, Scope: ScopeCollection,
		Summary: "List the decks that have cards you may read.", Examples: []string{`{}`},
	})
	FlashcardGetCards = define[FlashcardGetCardsIn, FlashcardGetCardsOut](Action{
		Name: "get_cards", Kind: Read, Level: contract.Read, Scope: ScopeCollection,
		Summary: "Page through the cards of a deck, due or not.", Examples: []string{`{"deckID":""}`},
	})
	FlashcardReviewCard = define[FlashcardReviewCardIn, FlashcardReviewCardOut](Action{
		Name: "review_card", Kind: Write, Level: contract.ReadWrite, Scope: ScopeTargets, Tier: Advanced, Guarded: OnState,
		Summary:  "Rate a card after the person answered, or put it off.",
		Rules:    []Rule{ExactlyOne([]string{"rating"}, []string{"skip"})},
		Guidance: []string{"The rating is the person's; do not review for them."},
		Examples: []string{`{"deckID":"20230218211946-2kw8jgx","cardID":"20261130125100-ggq4vqs","rating":3}`},
	})
	FlashcardCreateCard = define[FlashcardCreateCardIn, FlashcardChangeOut](Action{
		Name: "create_card", Kind: Write, Level: contract.ReadWrite, Scope: ScopeTargets, Tier: Advanced,
		Summary: "Make cards of blocks.", ParamAliases: cardBlock,
		Guidance: []string{"Good cards are one fact: ==mark== what is to be hidden, or put the answer below the first line of a list item or super block."},
		Examples: []string{`{"deckID":"","blockIDs":["20240102110003-block03"]}`},
	})
	FlashcardRemoveCard = define[FlashcardRemoveCardIn, FlashcardChangeOut](Action{
		Name: "remove_card", Kind: Delete, Level: contract.ReadWriteDelete, Scope: ScopeTargets, Tier: Advanced, Dangerous: true, Lasting: true, Guarded: OnState,
		Summary: "Take blocks out of a deck; the notes stay, what was learned is lost.", ParamAliases: cardBlock,
		Examples: []string{`{"deckID":"","blockIDs":["20240102110002-block02"]}`},
	})
)

func flashcardTool() *Tool {
	return &Tool{
		Name:    "flashcard",
		Title:   "Flashcards",
		Purpose: "Flashcards: blocks that a person learns by spaced repetition.",
		Fields:  map[string]string{"deckID": "Deck id; \"\" is the built-in one, for get_cards all."},
		Actions: []*Action{FlashcardListCards.Action, FlashcardGetDecks.Action, FlashcardGetCards.Action,
			FlashcardReviewCard.Action, FlashcardCreateCard.Action, FlashcardRemoveCard.Action},
	}
}
