package samplekernel

import (
	"os"
	"slices"
	"strings"
	"time"

	"siyuan-broker/connector/siyuan/samplekernel/text"
)

// builtInDeck is the deck every workspace has; most endpoints know only it.
const builtInDeck = "20230218211946-2kw8jgx"

// deck is a set of flashcards, data/storage/riff/<id>.json.
type deck struct {
	ID      string    `json:"id"`
	Name    string    `json:"name"`
	Created time.Time `json:"created"`
	Updated time.Time `json:"updated"`
	Cards   []*card   `json:"cards"`
}

// card is one flashcard. State is 0 new, 1 learning, 2 in review.
type card struct {
	ID         string    `json:"id"`
	BlockID    string    `json:"blockID"`
	Due        time.Time `json:"due"`
	Reps       int       `json:"reps"`
	Lapses     int       `json:"lapses"`
	State      int       `json:"state"`
	LastReview time.Time `json:"lastReview"`
}

func riffRoutes() map[string]route {
	const p = "/api/riff/"
	return map[string]route{
		p + "createRiffDeck":           {serve: createRiffDeck, write: true},
		p + "renameRiffDeck":           {serve: renameRiffDeck, write: true},
		p + "removeRiffDeck":           {serve: removeRiffDeck, write: true},
		p + "getRiffDecks":             {serve: getRiffDecks, noBody: true},
		p + "addRiffCards":             {serve: addRiffCards, write: true},
		p + "removeRiffCards":          {serve: removeRiffCards, write: true},
		p + "getRiffDueCards":          {serve: getRiffDueCards},
		p + "getTreeRiffDueCards":      {serve: getTreeRiffDueCards},
		p + "getNotebookRiffDueCards":  {serve: getNotebookRiffDueCards},
		p + "getRiffCards":             {serve: getRiffCards},
		p + "getTreeRiffCards":         {serve: getTreeRiffCards},
		p + "getNotebookRiffCards":     {serve: getNotebookRiffCards},
		p + "getRiffCardsByBlockIDs":   {serve: getRiffCardsByBlockIDs},
		p + "reviewRiffCard":           {serve: reviewRiffCard, write: true},
		p + "skipReviewRiffCard":       {serve: skipReviewRiffCard},
		p + "resetRiffCards":           {serve: resetRiffCards, write: true},
		p + "batchSetRiffCardsDueTime": {serve: batchSetRiffCardsDueTime, write: true},
	}
}

func (k *Kernel) deckFile(id string) string {
	return k.workspace("data", "storage", "riff", id+".json")
}

func (k *Kernel) deck(id string) (*deck, bool) {
	if !text.ValidID(id) {
		return nil, false
	}
	d := &deck{}
	if readJSONFile(k.deckFile(id), d) == nil {
		return d, true
	}
	if id != builtInDeck {
		return nil, false
	}
	return &deck{ID: id, Name: "Built-in Deck", Created: k.now(), Updated: k.now()}, true
}

func (k *Kernel) saveDeck(d *deck) error {
	d.Updated = k.now()
	return writeJSONFile(k.deckFile(d.ID), d)
}

// decks lists all but the built-in one, by id.
func (k *Kernel) decks() (list []*deck) {
	entries, _ := os.ReadDir(k.workspace("data", "storage", "riff")) // no folder: no decks
	for _, e := range entries {
		if d, ok := k.deck(strings.TrimSuffix(e.Name(), ".json")); ok && d.ID != builtInDeck {
			list = append(list, d)
		}
	}
	return list
}

func deckItem(d *deck) map[string]any {
	const layout = "2006-01-02 15:04:05"
	return map[string]any{"id": d.ID, "name": d.Name, "size": len(d.Cards), "created": d.Created.Format(layout), "updated": d.Updated.Format(layout)}
}

func createRiffDeck(k *Kernel, a args) (any, error) {
	d := &deck{ID: k.newID(), Name: a.str("name"), Created: k.now()}
	if err := k.saveDeck(d); err != nil {
		return nil, err
	}
	return deckItem(d), nil
}

func renameRiffDeck(k *Kernel, a args) (any, error) {
	name := a.str("name")
	if d, ok := k.deck(a.str("deckID")); ok {
		d.Name = name
		return nil, k.saveDeck(d)
	}
	return nil, nil
}

func removeRiffDeck(k *Kernel, a args) (any, error) {
	if d, ok := k.deck(a.str("deckID")); ok {
		for _, c := range d.Cards {
			if err := k.markCard(c.BlockID, d.ID, false); err != nil {
				return nil, err
			}
		}
		_ = os.Remove(k.deckFile(d.ID)) // missing is as good as removed
	}
	return nil, nil
}

func getRiffDecks(k *Kernel, _ args) (any, error) {
	out := []any{}
	for _, d := range k.decks() {
		out = append(out, deckItem(d))
	}
	return out, nil
}

// markCard notes on a block which decks it is in.
func (k *Kernel) markCard(blockID, deckID string, in bool) error {
	p, ok := k.block(blockID)
	if !ok {
		return nil
	}
	var ids []string
	for _, id := range strings.Split(text.Attr(p.node, "custom-riff-decks"), ",") {
		if id != "" && id != deckID {
			ids = append(ids, id)
		}
	}
	if in {
		ids = append(ids, deckID)
	}
	text.SetAttr(p.node, "custom-riff-decks", strings.Join(ids, ","))
	return k.save(p.doc)
}

// unmarkCard takes a block out of one deck, or with an empty id out of all, of
// decks that do not exist as well.
func (k *Kernel) unmarkCard(blockID, deckID string) error {
	if deckID != "" {
		return k.markCard(blockID, deckID, false)
	}
	p, ok := k.block(blockID)
	if !ok {
		return nil
	}
	text.SetAttr(p.node, "custom-riff-decks", "")
	return k.save(p.doc)
}

// addRiffCards marks blocks even for a deck that does not exist, and counts
// blocks that do not.
func addRiffCards(k *Kernel, a args) (any, error) {
	deckID, ids := a.str("deckID"), a.strs("blockIDs")
	d, ok := k.deck(deckID)
	for _, id := range ids {
		if err := k.markCard(id, deckID, true); err != nil {
			return nil, err
		}
		if ok && !slices.ContainsFunc(d.Cards, func(c *card) bool { return c.BlockID == id }) {
			d.Cards = append(d.Cards, &card{ID: k.newID(), BlockID: id, Due: k.now()})
		}
	}
	if !ok {
		return nil, nil
	}
	if err := k.saveDeck(d); err != nil {
		return nil, err
	}
	return deckItem(d), nil
}

func removeRiffCards(k *Kernel, a args) (any, error) {
	deckID, ids := a.str("deckID"), a.strs("blockIDs")
	decks := k.decks()
	if deckID != "" {
		decks = nil
		if d, ok := k.deck(deckID); ok {
			decks = []*deck{d}
		}
	} else if b, ok := k.deck(builtInDeck); ok {
		decks = append(decks, b)
	}
	var answer any
	for _, d := range decks {
		d.Cards = slices.DeleteFunc(d.Cards, func(c *card) bool { return slices.Contains(ids, c.BlockID) })
		for _, id := range ids {
			if err := k.unmarkCard(id, deckID); err != nil {
				return nil, err
			}
		}
		if err := k.saveDeck(d); err != nil {
			return nil, err
		}
		if deckID != "" {
			answer = deckItem(d)
		}
	}
	return answer, nil
}

// due lists the cards of a deck that want a review now and stand where keep says.
func (k *Kernel) due(d *deck, keep func(c *card) bool) map[string]any {
	cards, fresh := []any{}, 0
	for _, c := range d.Cards {
		if c.Due.After(k.now()) || !keep(c) {
			continue
		}
		if c.State == 0 {
			fresh++
		}
		last := c.LastReview.UnixMilli()
		cards = append(cards, map[string]any{
			"deckID": d.ID, "cardID": c.ID, "blockID": c.BlockID, "lapses": c.Lapses, "reps": c.Reps, "state": c.State, "lastReview": last,
			"nextDues": map[string]string{"1": "1 minute", "2": "5 minutes", "3": "10 minutes", "4": "16 days"},
		})
	}
	return map[string]any{"cards": cards, "unreviewedCount": len(cards), "unreviewedNewCardCount": fresh, "unreviewedOldCardCount": len(cards) - fresh}
}

func all(*card) bool { return true }

// getRiffDueCards takes the empty id for the built-in deck, not for all decks.
func getRiffDueCards(k *Kernel, a args) (any, error) {
	id := a.str("deckID")
	if id == "" {
		id = builtInDeck
	}
	d, ok := k.deck(id)
	if !ok {
		return map[string]any{"cards": nil, "unreviewedCount": 0, "unreviewedNewCardCount": 0, "unreviewedOldCardCount": 0}, nil
	}
	return k.due(d, all), nil
}

// inTreeOf keeps the cards of a document and the documents below it.
func (k *Kernel) inTreeOf(rootID string) func(c *card) bool {
	root, ok := k.docs[rootID]
	return func(c *card) bool {
		d, found := k.docOf(c.BlockID)
		return ok && found && d.box == root.box && (d == root || strings.HasPrefix(d.path, root.folder()+"/"))
	}
}

// getTreeRiffDueCards gives all due cards for a document it does not know.
func getTreeRiffDueCards(k *Kernel, a args) (any, error) {
	id := a.str("rootID")
	keep := k.inTreeOf(id)
	if _, ok := k.docs[id]; !ok {
		keep = all
	}
	d, _ := k.deck(builtInDeck)
	return k.due(d, keep), nil
}

func (k *Kernel) inBox(box string) func(c *card) bool {
	return func(c *card) bool {
		d, ok := k.docOf(c.BlockID)
		return ok && d.box == box
	}
}

func getNotebookRiffDueCards(k *Kernel, a args) (any, error) {
	box := a.str("notebook")
	if dir := k.workspace("data", box); !fileExists(dir) {
		return nil, fail("open " + dir + ": no such file or directory")
	}
	d, _ := k.deck(builtInDeck)
	return k.due(d, k.inBox(box)), nil
}

// cardViews pages through the blocks of cards.
func (k *Kernel) cardViews(cards []*card, a args) map[string]any {
	size, page := a.intOr("pageSize", 20), max(1, a.intOr("page", 1))
	total := len(cards)
	blocks := []*blockView{}
	for _, c := range cards[min((page-1)*size, total):min(page*size, total)] {
		blocks = append(blocks, k.cardView(c.BlockID, c))
	}
	return map[string]any{"blocks": blocks, "total": total, "pageCount": (total + size - 1) / size}
}

// cardView is the block of a card; of one that is gone or has no card it is a stub.
func (k *Kernel) cardView(blockID string, c *card) *blockView {
	rows := k.rows("SELECT "+viewColumns+" FROM blocks WHERE id = ? LIMIT 1", blockID)
	if len(rows) == 0 || c == nil {
		return &blockView{ID: blockID, Content: "Search content block does not exist"}
	}
	v := viewOf(rows[0])
	v.RiffCardID = c.ID
	v.RiffCard = map[string]any{"due": c.Due, "reps": c.Reps, "lapses": c.Lapses, "state": c.State, "lastReview": c.LastReview}
	return v
}

func getRiffCards(k *Kernel, a args) (any, error) {
	id := a.str("id")
	var cards []*card
	if d, ok := k.deck(id); ok {
		cards = d.Cards
	} else if id == "" {
		if b, ok := k.deck(builtInDeck); ok {
			cards = append(cards, b.Cards...)
		}
		for _, d := range k.decks() {
			cards = append(cards, d.Cards...)
		}
	}
	return k.cardViews(cards, a), nil
}

func (k *Kernel) builtInCards(keep func(c *card) bool) (cards []*card) {
	d, _ := k.deck(builtInDeck)
	for _, c := range d.Cards {
		if keep(c) {
			cards = append(cards, c)
		}
	}
	return cards
}

func getTreeRiffCards(k *Kernel, a args) (any, error) {
	return k.cardViews(k.builtInCards(k.inTreeOf(a.str("id"))), a), nil
}

func getNotebookRiffCards(k *Kernel, a args) (any, error) {
	return k.cardViews(k.builtInCards(k.inBox(a.str("id"))), a), nil
}

// getRiffCardsByBlockIDs knows the cards of the built-in deck only.
func getRiffCardsByBlockIDs(k *Kernel, a args) (any, error) {
	blocks := []*blockView{}
	for _, id := range a.strs("blockIDs") {
		var found *card
		for _, c := range k.builtInCards(all) {
			if c.BlockID == id {
				found = c
			}
		}
		blocks = append(blocks, k.cardView(id, found))
	}
	return map[string]any{"blocks": blocks}, nil
}

// reviewRiffCard sets the next review: 1 again, 2 hard, 3 good, 4 easy.
func reviewRiffCard(k *Kernel, a args) (any, error) {
	deckID, cardID, rating := a.str("deckID"), a.str("cardID"), a.intOr("rating", 3)
	d, ok := k.deck(deckID)
	if !ok {
		return nil, nil
	}
	waits := map[int]time.Duration{1: time.Minute, 2: 5 * time.Minute, 3: 10 * time.Minute, 4: 16 * 24 * time.Hour}
	for _, c := range d.Cards {
		if c.ID == cardID {
			c.Reps, c.State, c.LastReview, c.Due = c.Reps+1, 1, k.now(), k.now().Add(waits[rating])
			if rating == 4 {
				c.State = 2
			}
			return nil, k.saveDeck(d)
		}
	}
	return nil, nil
}

func skipReviewRiffCard(_ *Kernel, a args) (any, error) {
	_, _ = a.str("deckID"), a.str("cardID")
	return nil, nil
}

func resetRiffCards(k *Kernel, a args) (any, error) {
	ids := a.strsOr("blockIDs")
	d, ok := k.deck(a.str("deckID"))
	if !ok {
		return nil, nil
	}
	for _, c := range d.Cards {
		if len(ids) == 0 || slices.Contains(ids, c.BlockID) {
			c.Reps, c.Lapses, c.State, c.LastReview, c.Due = 0, 0, 0, time.Time{}, k.now()
		}
	}
	return nil, k.saveDeck(d)
}

func batchSetRiffCardsDueTime(k *Kernel, a args) (any, error) {
	for _, item := range a.objects("cardDues") {
		id, due := item.str("id"), item.str("due")
		at, err := time.ParseInLocation("20060102150405", due, k.now().Location())
		if err != nil {
			return nil, fail(err.Error())
		}
		decks := k.decks()
		if b, ok := k.deck(builtInDeck); ok {
			decks = append(decks, b)
		}
		for _, d := range decks {
			for _, c := range d.Cards {
				if c.ID == id {
					c.Due = at
					if err := k.saveDeck(d); err != nil {
						return nil, err
					}
				}
			}
		}
	}
	return nil, nil
}

// must is for the built-in deck, which is never missing.
func must(d *deck, _ bool) *deck { return d }
