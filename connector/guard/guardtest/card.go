package guardtest

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"siyuan-broker/connector/siyuan"
)

// Card is the flashcard of [AddCard], which shows Intro.
const Card = "20261130125100-ggq4vqs"

// AddCard makes the flashcard of the contract's examples, in the built-in deck.
// The kernel chooses the ids of cards, so this one is given its own in the file
// of the deck, below the workspace folder.
func AddCard(t testing.TB, w *siyuan.Writer, workspace string) {
	t.Helper()
	_, err := w.AddCards(context.Background(), siyuan.BuiltinDeck, []siyuan.ID{Intro})
	check(t, err)
	file := filepath.Join(workspace, "data", "storage", "riff", string(siyuan.BuiltinDeck)+".json")
	text, err := os.ReadFile(file)
	check(t, err)
	var deck map[string]any
	check(t, json.Unmarshal(text, &deck))
	deck["cards"].([]any)[0].(map[string]any)["id"] = Card
	text, err = json.Marshal(deck)
	check(t, err)
	check(t, os.WriteFile(file, text, 0o600))
}
