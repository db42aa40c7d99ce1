package samplekernel

import (
	"encoding/json"
)

func transactionRoutes() map[string]route {
	return map[string]route{
		"/api/transactions":              {serve: transactions, write: true},
		"/api/transactions/undoState":    {serve: undoState},
		"/api/transactions/undo":         {serve: undo, write: true},
		"/api/transactions/redo":         {serve: redo, write: true},
		"/api/transactions/clearHistory": {serve: clearUndo},
	}
}

// maxUndo bounds the transactions remembered for one document.
const maxUndo = 64

// undoStack holds what can be taken back and brought back for one document.
type undoStack struct{ done, undone []*transaction }

// transactions queues operations; those that cannot be carried out are echoed
// like the others.
func transactions(k *Kernel, a args) (any, error) {
	reqID, err := need[float64](a, "reqId", "Number")
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(a.list("transactions"))
	if err != nil {
		return nil, err
	}
	var txs []*transaction
	if err := json.Unmarshal(raw, &txs); err != nil {
		return nil, fail(err.Error())
	}
	for _, tx := range txs {
		tx.Timestamp = int64(reqID)
		for _, op := range tx.DoOperations {
			if err := k.apply(op); err != nil {
				return nil, err
			}
		}
		k.remember(tx)
	}
	return txs, nil
}

// remember files a transaction under the documents it changed.
func (k *Kernel) remember(tx *transaction) {
	if len(tx.UndoOperations) == 0 {
		return
	}
	for _, op := range tx.DoOperations {
		for _, id := range []string{op.ID, op.ParentID} {
			if d, ok := k.docOf(id); ok {
				s := k.undo[d.id()]
				if s == nil {
					s = &undoStack{}
					k.undo[d.id()] = s
				}
				s.done, s.undone = append(s.done, tx), nil
				if len(s.done) > maxUndo {
					s.done = s.done[1:]
				}
				return
			}
		}
	}
}

func undoState(k *Kernel, a args) (any, error) {
	id := a.str("rootID")
	s := k.undo[id]
	out := map[string]any{"canUndo": false, "canRedo": false, "peekMutatedRootIDs": nil}
	if s != nil {
		out["canUndo"], out["canRedo"] = len(s.done) > 0, len(s.undone) > 0
		if len(s.done) > 0 {
			out["peekMutatedRootIDs"] = []string{id}
		}
	}
	return out, nil
}

func undo(k *Kernel, a args) (any, error) {
	id := a.str("rootID")
	s := k.undo[id]
	if s == nil || len(s.done) == 0 {
		return nil, nil
	}
	tx := s.done[len(s.done)-1]
	s.done, s.undone = s.done[:len(s.done)-1], append(s.undone, tx)
	return k.replay(id, s, tx.UndoOperations, tx.DoOperations, true)
}

func redo(k *Kernel, a args) (any, error) {
	id := a.str("rootID")
	s := k.undo[id]
	if s == nil || len(s.undone) == 0 {
		return nil, nil
	}
	tx := s.undone[len(s.undone)-1]
	s.undone, s.done = s.undone[:len(s.undone)-1], append(s.done, tx)
	return k.replay(id, s, tx.DoOperations, tx.UndoOperations, false)
}

func (k *Kernel) replay(id string, s *undoStack, do, inverse []*operation, isUndo bool) (any, error) {
	for _, op := range do {
		if err := k.apply(op); err != nil {
			return nil, err
		}
	}
	return map[string]any{
		"doOperations": do, "undoOperations": inverse, "isUndo": isUndo, "mutatedRootIDs": []string{id},
		"canUndo": len(s.done) > 0, "canRedo": len(s.undone) > 0,
	}, nil
}

func clearUndo(k *Kernel, a args) (any, error) {
	delete(k.undo, a.str("rootID"))
	return nil, nil
}
