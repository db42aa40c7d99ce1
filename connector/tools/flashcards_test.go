package tools_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/guard/guardtest"
	"siyuan-broker/connector/policy"
	"siyuan-broker/connector/siyuan"
	"siyuan-broker/connector/siyuan/samplekernel"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

// cardDesk has cards of the built-in deck in Work, Diary and Private.
func cardDesk(t *testing.T) *desk {
	t.Helper()
	d := newDesk(t, policy.Fixed(contract.ReadWriteDelete))
	if _, err := d.Client.Writer().AddCards(t.Context(), siyuan.BuiltinDeck, []siyuan.ID{guardtest.SecretP, guardtest.Intro, guardtest.EntryP}); err != nil {
		t.Fatal(err)
	}
	return d
}

func due(t *testing.T, d *desk, g *contract.Grant, args string) catalogue.FlashcardListCardsOut {
	t.Helper()
	return ok[catalogue.FlashcardListCardsOut](t, d, g, "flashcard.list_cards", args)
}

func cardBlocks(cards []catalogue.Flashcard) string {
	var ids []string
	for _, c := range cards {
		ids = append(ids, c.BlockID)
	}
	return strings.Join(ids, " ")
}

func TestDueCardsAreThoseOfReadableNotes(t *testing.T) {
	t.Parallel()
	d := cardDesk(t)
	for args, want := range map[string]string{
		`{"scope":"all","filter":"due"}`:                                           guardtest.Intro + " " + guardtest.EntryP,
		`{"scope":"all","filter":"new"}`:                                           guardtest.Intro + " " + guardtest.EntryP,
		`{"scope":"all","filter":"old"}`:                                           "",
		`{"scope":"deck","filter":"due","deckID":""}`:                              guardtest.Intro + " " + guardtest.EntryP,
		`{"scope":"notebook","filter":"due","notebook":"` + guardtest.Diary + `"}`: guardtest.EntryP,
		`{"scope":"tree","filter":"due","rootID":"` + guardtest.Projects + `"}`:    guardtest.Intro,
		`{"scope":"tree","filter":"due","rootID":"` + guardtest.Entry + `"}`:       guardtest.EntryP,
		`{"scope":"deck","filter":"due","deckID":"20240199000000-missing"}`:        "",
	} {
		if out := due(t, d, writer(), args); cardBlocks(out.Cards) != want {
			t.Errorf("%s: %s, want %s", args, cardBlocks(out.Cards), want)
		}
	}
	if out := due(t, d, writer(), `{"scope":"all","filter":"old"}`); out.UnreviewedCount != 2 || out.UnreviewedNewCardCount != 2 {
		t.Errorf("counts %+v", out)
	}
	if out := due(t, d, owner(), `{"scope":"all","filter":"due"}`); out.UnreviewedCount != 3 {
		t.Errorf("the owner sees %+v", out)
	}
	fails(t, d.call(writer(), "flashcard.list_cards", `{"scope":"notebook","filter":"due","notebook":"`+guardtest.Private+`"}`), contract.NotFound)
	fails(t, d.call(writer(), "flashcard.list_cards", `{"scope":"tree","filter":"due"}`), contract.InvalidArguments)
	page := ok[catalogue.FlashcardGetCardsOut](t, d, writer(), "flashcard.get_cards", `{"deckID":"","pageSize":1}`)
	if page.Total != 2 || page.PageCount != 2 || len(page.Cards) != 1 {
		t.Errorf("page %+v", page)
	}
}

func TestMarkedTextIsWhatACardHides(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.ReadWriteDelete))
	d.Add(t, guardtest.Doc{Box: guardtest.Work, Path: "/20240109000001-cardsdo.sy", Title: "C", Text: "The capital of ==France== is ==Paris==.\n{: id=\"20240109000003-block01\"}\n"})
	ok[catalogue.FlashcardChangeOut](t, d, writer(), "flashcard.create_card", `{"deckID":"","blockIDs":["20240109000003-block01"]}`)
	out := due(t, d, writer(), `{"scope":"all","filter":"due"}`)
	if len(out.Cards) != 1 || out.Cards[0].Front != "The capital of ____ is ____." || out.Cards[0].Back != "France; Paris" {
		t.Errorf("%+v", out.Cards)
	}
}

// TestADeckOfHiddenCardsHasNoNameForOthers: what a deck is called may tell what
// the hidden notes are about.
func TestADeckOfHiddenCardsHasNoNameForOthers(t *testing.T) {
	t.Parallel()
	d := cardDesk(t)
	w := d.Client.Writer()
	mine, err1 := w.CreateDeck(t.Context(), "Mine")
	hidden, err2 := w.CreateDeck(t.Context(), "Nightfall")
	_, err3 := w.AddCards(t.Context(), mine.ID, []siyuan.ID{guardtest.Intro})
	_, err4 := w.AddCards(t.Context(), hidden.ID, []siyuan.ID{guardtest.SecretP})
	if err1 != nil || err2 != nil || err3 != nil || err4 != nil {
		t.Fatal(err1, err2, err3, err4)
	}
	answers(t, d, writer(), "flashcard.get_decks", `{}`, fmt.Sprintf(`{"decks":[{"id":%q,"name":"Built-in Deck"},{"id":%q,"name":"Mine"}]}`, guard.BuiltinDeck, mine.ID))
	if all := ok[catalogue.FlashcardGetDecksOut](t, d, owner(), "flashcard.get_decks", `{}`); len(all.Decks) != 3 {
		t.Errorf("the owner sees %+v", all)
	}
	for _, id := range []string{string(hidden.ID), guardtest.Missing} {
		fails(t, d.call(writer(), "flashcard.create_card", fmt.Sprintf(`{"deckID":%q,"blockIDs":[%q]}`, id, guardtest.Intro)), contract.NotFound)
	}
}

func TestReviewingACardNeedsWritingAtItsBlock(t *testing.T) {
	t.Parallel()
	d := cardDesk(t)
	byBlock := map[string]catalogue.Flashcard{}
	for _, c := range due(t, d, owner(), `{"scope":"all","filter":"due"}`).Cards {
		byBlock[c.BlockID] = c
	}
	review := func(block, how string) contract.Result {
		return d.call(writer(), "flashcard.review_card", fmt.Sprintf(`{"deckID":%q,"cardID":%q,%s}`, guard.BuiltinDeck, byBlock[block].CardID, how))
	}
	fails(t, review(guardtest.EntryP, `"rating":3`), contract.PermissionDenied)
	fails(t, review(guardtest.SecretP, `"rating":3`), contract.NotFound)
	fails(t, review(guardtest.Missing, `"rating":3`), contract.InvalidArguments) // no card id
	if r := review(guardtest.Intro, `"skip":true`); r.Err != nil {
		t.Error(r.Err)
	}
	endpoint := "/api/riff/reviewRiffCard"
	d.Kernel.Faults().Set(endpoint, samplekernel.Fault{Kind: samplekernel.FaultNoEffect})
	fails(t, review(guardtest.Intro, `"rating":3`), contract.WriteNotPersisted)
	d.Kernel.Faults().Clear()
	if r := review(guardtest.Intro, `"rating":3`); r.Err != nil || !strings.Contains(string(r.Body), `"rating":3,"reps":1`) {
		t.Errorf("%s %v", r.Body, r.Err)
	}
	if out := due(t, d, writer(), `{"scope":"all","filter":"due"}`); cardBlocks(out.Cards) != guardtest.EntryP {
		t.Errorf("due after the review: %s", cardBlocks(out.Cards))
	}
}

func TestCardsAreMadeAndTakenAwayOnce(t *testing.T) {
	t.Parallel()
	d, g := newDesk(t, policy.Fixed(contract.ReadWriteDelete)), owner()
	args := `{"deckID":"","blockIDs":["` + guardtest.Intro + `","` + guardtest.Heading + `"]}`
	body := func(n int) string {
		return fmt.Sprintf(`{"success":true,"effectiveDeckID":%q,"blockIDs":[%q,%q],"changed":%d}`, guard.BuiltinDeck, guardtest.Intro, guardtest.Heading, n)
	}
	answers(t, d, g, "flashcard.create_card", args, body(2))
	answers(t, d, g, "flashcard.create_card", args, body(0))
	answers(t, d, g, "flashcard.remove_card", args, body(2))
	answers(t, d, g, "flashcard.remove_card", args, body(0))
	fails(t, d.call(g, "flashcard.create_card", `{"deckID":"","blockIDs":["`+guardtest.Alpha+`"]}`), contract.InvalidTarget)
	for _, c := range []struct {
		action, endpoint string
		want             contract.Code
	}{
		{"create", "add", contract.WriteNotPersisted},
		{"remove", "remove", contract.WriteNotPersisted},
	} {
		d.Kernel.Faults().Set("/api/riff/"+c.endpoint+"RiffCards", samplekernel.Fault{Kind: samplekernel.FaultNoEffect})
		fails(t, d.call(g, "flashcard."+c.action+"_card", args), c.want)
		d.Kernel.Faults().Clear()
		answers(t, d, g, "flashcard."+c.action+"_card", args, body(2))
	}
}

func TestLiveFlashcards(t *testing.T) {
	d, g := liveDesk(t)
	nb := liveNotebook(t, d, g)
	id := liveDoc(t, d, g, nb, "/Cards", "The capital of ==France== is Paris.\n\n# What is a yak?\n")
	top := d.children(t, id)
	cloze, heading := string(top[0].ID), string(top[1].ID)
	args := fmt.Sprintf(`{"deckID":"","blockIDs":[%q,%q]}`, cloze, heading)
	if out := ok[catalogue.FlashcardChangeOut](t, d, g, "flashcard.create_card", args); out.Changed != 2 {
		t.Errorf("created %+v", out)
	}
	list := `{"scope":"tree","filter":"due","rootID":"` + id + `"}`
	out := due(t, d, g, list)
	i := slices.IndexFunc(out.Cards, func(c catalogue.Flashcard) bool { return c.BlockID == cloze })
	if len(out.Cards) != 2 || i < 0 || out.Cards[i].Front != "The capital of ____ is Paris." || out.UnreviewedNewCardCount != 2 {
		t.Fatalf("due %+v", out)
	}
	rated := ok[catalogue.FlashcardReviewCardOut](t, d, g, "flashcard.review_card", fmt.Sprintf(`{"deckID":%q,"cardID":%q,"rating":3}`, guard.BuiltinDeck, out.Cards[i].CardID))
	if rated.Reps != 1 || cardBlocks(due(t, d, g, list).Cards) != heading {
		t.Errorf("rated %+v", rated)
	}
	if out := ok[catalogue.FlashcardChangeOut](t, d, g, "flashcard.remove_card", args); out.Changed != 2 || len(due(t, d, g, list).Cards) != 0 {
		t.Errorf("removed %+v", out)
	}
}
