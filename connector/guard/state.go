package guard

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
)

// State is how the targets of a write look to its caller at one moment.
type State struct {
	Hash    string   // "sha256:v1:" and 64 hexadecimal digits
	Targets []string // their ids, sorted
}

// Watch sees the state of the targets of a write while they are locked.
type Watch interface {
	// Structure says that only where things stand matters, not what they say.
	Structure() bool
	// Before is called when nothing is written yet; its error stops the write.
	Before(s State) error
	// After is called when the write has succeeded.
	After(s State)
}

// HashPrefix begins every state hash and names how it is made.
const HashPrefix = "sha256:v1:"

// state is what the caller may read of the targets, as one hash over canonical
// JSON: keys sorted, lists in their order. Times and what others' databases say
// are left out, and hidden things cannot be told from it: it is made of the same
// masked readings that answers are.
func (s *Session) state(ctx context.Context, targets []Target, structure bool) (State, error) {
	seen := map[string]any{}
	for _, t := range targets {
		if h, ok := t.(held); ok {
			state, err := h.seen(ctx)
			if err != nil {
				return State{}, err
			}
			seen[h.key()] = state
			continue
		}
		if d, ok := t.(Database); ok {
			state, err := s.databaseState(ctx, d)
			if err != nil {
				return State{}, err
			}
			seen[d.ID()] = state
			continue
		}
		nb, b := t.target()
		id := nb.ID()
		if b.id != "" {
			id = b.ID()
		}
		if seen[id] != nil && b.id == "" {
			continue
		}
		var err error
		switch {
		case b.id == "":
			seen[id], err = s.notebookState(ctx, nb, structure)
		case structure:
			seen[id], err = s.structureState(ctx, b)
		default:
			seen[id], err = s.blockState(ctx, b)
		}
		if gone := errors.Is(err, siyuan.Missing) || errors.Is(err, siyuan.Rejected) || contract.CodeOf(err) == contract.NotFound; gone {
			seen[id], err = "gone", nil
		}
		if err != nil {
			return State{}, err
		}
	}
	text, err := json.Marshal(seen)
	if err != nil {
		return State{}, fmt.Errorf("encode state: %w", err)
	}
	sum := sha256.Sum256(text)
	return State{Hash: HashPrefix + hex.EncodeToString(sum[:]), Targets: slices.Sorted(maps.Keys(seen))}, nil
}

func (s *Session) structureState(ctx context.Context, b Block) (any, error) {
	infos, err := s.g.r.BlockTreeInfos(ctx, []siyuan.ID{b.id})
	if err != nil {
		return nil, err
	}
	info, ok := infos[b.id]
	if !ok {
		return "gone", nil
	}
	children, err := s.g.r.ChildBlocks(ctx, b.id)
	if err != nil {
		return nil, err
	}
	ids := make([]siyuan.ID, len(children))
	for i, c := range children {
		ids[i] = c.ID
	}
	state := map[string]any{"type": info.Type, "parent": info.ParentID, "previous": info.PreviousID, "children": ids}
	if b.IsDoc() {
		at, err := s.g.r.PathByID(ctx, b.id)
		if err != nil {
			return nil, err
		}
		state["path"] = pathMark(at.Notebook, at.Path)
	}
	return state, nil
}

func (s *Session) blockState(ctx context.Context, b Block) (any, error) {
	structure, err := s.structureState(ctx, b)
	state, there := structure.(map[string]any)
	if err != nil || !there {
		return structure, err
	}
	delete(state, "previous") // a neighbour's coming and going is no change of the block
	text, err := s.Kramdown(ctx, b)
	if err != nil {
		return nil, err
	}
	inside := map[siyuan.ID]siyuan.Attrs{}
	for id, attrs := range ialsByID(text) {
		inside[id] = withoutTimes(attrs)
	}
	attrs, err := s.Attrs(ctx, b)
	if err != nil {
		return nil, err
	}
	state["text"], state["inside"], state["attrs"] = strings.TrimSpace(body(text)), inside, withoutTimes(attrs)
	return state, nil
}

// databaseState is its columns, its views, its stored cells and its templates.
func (s *Session) databaseState(ctx context.Context, d Database) (any, error) {
	now, err := s.Database(ctx, d.ID(), contract.Read)
	if contract.CodeOf(err) == contract.NotFound {
		return "gone", nil
	}
	if err != nil {
		return nil, err
	}
	rows, err := s.AllRows(ctx, now)
	if err != nil {
		return nil, err
	}
	cells := map[string]map[string]string{}
	for _, r := range rows {
		cells[r.ID] = map[string]string{"block": r.Block}
		for _, c := range r.Cells {
			cells[r.ID][string(c.KeyID)] = cellMark(&c)
		}
	}
	templates, standard, err := s.RowTemplates(ctx, now)
	if err != nil {
		return nil, err
	}
	presets := []string{standard}
	for _, t := range templates {
		presets = append(presets, fmt.Sprintf("%s %q %s %s %q", t.ID, t.Name, t.Target, t.Box, t.Path))
		for _, c := range t.Cells {
			presets = append(presets, fmt.Sprint(c.Column, c.Today, cellMark(&c.Value)))
		}
	}
	return map[string]any{"name": now.Name(), "columns": now.Columns(), "views": now.file.Views, "cells": cells, "templates": presets}, nil
}

func withoutTimes(attrs map[string]string) map[string]string {
	own := maps.Clone(attrs)
	delete(own, "updated")
	maps.DeleteFunc(own, func(k, _ string) bool { return databaseAttr(k) })
	return own
}

// notebookState is its row and its settings; of the structure, that it is there.
func (s *Session) notebookState(ctx context.Context, n Notebook, structure bool) (any, error) {
	all, _, err := s.g.r.Notebooks(ctx)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(x siyuan.Notebook) bool { return x.ID == n.id })
	if i < 0 {
		return "gone", nil
	}
	if structure {
		return "there", nil
	}
	conf, err := s.NotebookConf(ctx, n)
	return map[string]any{"name": all[i].Name, "icon": all[i].Icon, "closed": all[i].Closed, "conf": conf}, err
}
