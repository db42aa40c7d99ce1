package tunneltest

import (
	"bytes"
	"context"
	"encoding/json"
	"sync"

	"siyuan-broker/contract"
)

// workbench is a home that counts what it executes, by request id. Tool "read"
// reads, tool "write" has an effect once per request id and repeats its stored
// answer, as the real ledger does.
type workbench struct {
	size    int                                                     // bytes of a result
	steps   int                                                     // of progress before it
	working func(ctx context.Context, c contract.Call, effect bool) // nil: nothing; called before the answer

	mu      sync.Mutex
	arrived map[string]int // calls by request id
	effects map[string]int // writes executed by request id
}

func newWorkbench(size, steps int) *workbench {
	return &workbench{size: size, steps: steps, arrived: map[string]int{}, effects: map[string]int{}}
}

func (w *workbench) Handle(ctx context.Context, c contract.Call, progress func(contract.Progress)) contract.Result {
	w.mu.Lock()
	w.arrived[c.RequestID]++
	effect := c.Tool == "write" && w.effects[c.RequestID] == 0
	if effect {
		w.effects[c.RequestID]++
	}
	w.mu.Unlock()
	for i := range w.steps {
		progress(contract.Progress{Done: float64(i + 1), Total: float64(w.steps)})
	}
	if w.working != nil {
		w.working(ctx, c, effect)
	}
	body := append(append([]byte(`"`), bytes.Repeat([]byte("x"), w.size)...), '"')
	return contract.Result{Body: json.RawMessage(body)}
}

// counts are how often a request arrived, and how often it had an effect.
func (w *workbench) counts(requestID string) (arrived, effects int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.arrived[requestID], w.effects[requestID]
}
