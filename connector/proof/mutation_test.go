package proof

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"siyuan-broker/connector/siyuan"
	"siyuan-broker/connector/tools"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

// mutant is a handler that lets something hidden through. It holds the kernel
// client, which no real handler can.
type mutant struct {
	name string
	make func(w *world) tools.Binding
}

func mutants() []mutant {
	ctx := context.Background()
	count := func(w *world, stmt string) int {
		rows, err := w.client.Reader().SQL(ctx, stmt)
		if err != nil {
			return -1
		}
		return len(rows)
	}
	return []mutant{
		{"a count of all notebooks", func(w *world) tools.Binding {
			return tools.Bind(catalogue.NotebookList, func(ctx context.Context, _ *tools.Request, _ catalogue.NotebookListIn) (out catalogue.NotebookListOut, err error) {
				all, _, err := w.client.Reader().Notebooks(ctx)
				out.Notebooks = []catalogue.Notebook{{Name: fmt.Sprintf("1 of %d", len(all))}}
				return out, err
			})
		}},
		{"a total that counts hidden hits", func(w *world) tools.Binding {
			return tools.Bind(catalogue.SearchFulltext, func(_ context.Context, _ *tools.Request, in catalogue.SearchFulltextIn) (out catalogue.SearchFulltextOut, err error) {
				out.Data = []catalogue.SearchHit{}
				out.Total = count(w, "SELECT id FROM blocks WHERE content LIKE '%"+strings.ReplaceAll(in.Query, "'", "")+"%' LIMIT 1000")
				return out, nil
			})
		}},
		{"only the number of pages", func(w *world) tools.Binding {
			return tools.Bind(catalogue.SearchFulltext, func(context.Context, *tools.Request, catalogue.SearchFulltextIn) (out catalogue.SearchFulltextOut, err error) {
				out.Data = []catalogue.SearchHit{}
				out.HasNextPage = count(w, "SELECT id FROM blocks LIMIT 1000") > 64
				return out, nil
			})
		}},
		{"an error that says forbidden instead of not found", func(w *world) tools.Binding {
			return tools.Bind(catalogue.BlockGetKramdown, func(ctx context.Context, r *tools.Request, in catalogue.BlockGetKramdownIn) (out catalogue.BlockGetKramdownOut, err error) {
				_, err = r.Session.Block(ctx, in.ID, contract.Read)
				if err == nil {
					return catalogue.BlockGetKramdownOut{ID: in.ID}, nil
				}
				if _, there := w.client.Reader().PathByID(ctx, siyuan.ID(in.ID)); there == nil {
					return out, contract.Fail(contract.PermissionDenied, "Block %s is not yours.", in.ID)
				}
				return out, err
			})
		}},
		{"a log line that names a hidden title", func(w *world) tools.Binding {
			return tools.Bind(catalogue.BlockGetKramdown, func(ctx context.Context, r *tools.Request, in catalogue.BlockGetKramdownIn) (out catalogue.BlockGetKramdownOut, err error) {
				hpath, pathErr := w.client.Reader().HPathByID(ctx, siyuan.ID(w.notes.id("secret")))
				return out, contract.Fail(contract.NotFound, "There is no block %s.", in.ID).WithCause(errors.Join(errors.New(hpath), pathErr))
			})
		}},
		{"a progress message for each hidden document", func(w *world) tools.Binding {
			return tools.Bind(catalogue.DocumentListTree, func(_ context.Context, r *tools.Request, _ catalogue.DocumentListTreeIn) (out catalogue.DocumentListTreeOut, err error) {
				r.Progress(contract.Progress{Done: float64(count(w, "SELECT id FROM blocks WHERE type='d'"))})
				return out, nil
			})
		}},
		{"a placeholder only for what exists", func(w *world) tools.Binding {
			return tools.Bind(catalogue.DocumentGetDoc, func(ctx context.Context, r *tools.Request, in catalogue.DocumentGetDocIn) (out catalogue.DocumentGetDocOut, err error) {
				d, err := r.Session.Doc(ctx, in.ID, contract.Read)
				if err == nil {
					out.ID = d.ID()
					if _, there := w.client.Reader().PathByID(ctx, siyuan.ID(w.notes.id("secret"))); there == nil {
						out.HPath = "[unavailable]"
					}
				}
				return out, err
			})
		}},
		{"more kernel calls for what is hidden", func(w *world) tools.Binding {
			return tools.Bind(catalogue.BlockGetKramdown, func(ctx context.Context, r *tools.Request, in catalogue.BlockGetKramdownIn) (out catalogue.BlockGetKramdownOut, err error) {
				if _, there := w.client.Reader().PathByID(ctx, siyuan.ID(w.notes.id("secret"))); there == nil {
					for range 3 { // finding that something is missing takes more than one
						_, err = w.client.Reader().PathByID(ctx, siyuan.ID(w.notes.id("alpha")))
					}
				}
				return out, err
			})
		}},
	}
}

func TestTheProofCatchesALeak(t *testing.T) {
	whole(t)
	ws := newWorlds(t, nil)
	for _, m := range mutants() {
		t.Run(m.name, func(t *testing.T) {
			for _, w := range ws {
				w.bind(t, m.make(w))
			}
			var caught *leak
			for _, a := range bound(ws[0], catalogue.Read) {
				for i, args := range newGenerator(ws[0].notes, 0, a.ID()).arguments(a, leastAsked) {
					if _, l := ws.compare(ask{viewer: viewers()[i%3], action: a, args: args, n: i}); l != nil && caught == nil {
						caught = l
					}
				}
			}
			if caught == nil {
				t.Fatal("nothing was noticed")
			}
			t.Log(ws.shrink(caught))
		})
	}
}

func TestTheProofIsSilentAboutAHandlerThatLeaksNothing(t *testing.T) {
	t.Parallel()
	ws := newWorlds(t, func(*world) []tools.Binding {
		return []tools.Binding{tools.Bind(catalogue.NotebookList, func(_ context.Context, r *tools.Request, _ catalogue.NotebookListIn) (out catalogue.NotebookListOut, err error) {
			for _, n := range r.Session.Notebooks() {
				out.Notebooks = append(out.Notebooks, catalogue.Notebook{ID: n.ID(), Name: n.Name()})
			}
			return out, nil
		})}
	})
	for _, v := range viewers() {
		if _, l := ws.compare(ask{viewer: v, action: catalogue.NotebookList.Action, args: []byte("{}")}); l != nil {
			t.Error(l)
		}
	}
}
