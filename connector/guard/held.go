package guard

import (
	"context"
	"errors"

	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
)

// held is a target that is no note: files and templates, which belong to all
// notebooks that use them.
type held interface {
	Target
	owner() *Session
	// key names it for the locks and for the hash of its state.
	key() string
	// also lists what else is locked with it, and of is its notebooks.
	also() []string
	of() []siyuan.ID
	// again proves it once more, now that it is locked.
	again(ctx context.Context) error
	// seen is what the hash of its state is made of.
	seen(ctx context.Context) (any, error)
}

// takes makes a held target one of the write's.
func (tx *Tx) takes(h held) ([]string, error) {
	if h.owner() != tx.s {
		return nil, contract.Internalf(errors.New("guard: reference of another session"), "write %s", h.key())
	}
	tx.held[h.key()] = h
	for _, box := range h.of() {
		tx.notes[string(box)] = true
	}
	return append(h.also(), h.key()), nil
}

func (tx *Tx) reproveHeld(ctx context.Context) error {
	for _, h := range tx.held {
		if err := h.again(ctx); err != nil {
			return err
		}
	}
	return nil
}

// holds checks that the write has a held target.
func (tx *Tx) holds(h held) error {
	if tx.held[h.key()] == nil || h.owner() != tx.s {
		return contract.Internalf(errors.New("guard: write outside of the intent"), "%s", h.key())
	}
	return nil
}

// plainFile reports whether a path below a folder of the workspace leads to a
// file through folders, and to and through no symbolic link: SiYuan follows
// those, to its own settings too. folders remembers what was listed before.
func (g *Guard) plainFile(ctx context.Context, folders map[string][]siyuan.DirEntry, dir string, parts []string) (bool, error) {
	for i, name := range parts {
		list, known := folders[dir]
		if !known {
			var err error
			if list, err = g.r.ReadDir(ctx, dir); errors.Is(err, siyuan.Missing) {
				return false, nil
			} else if err != nil {
				return false, err
			}
			folders[dir] = list
		}
		ok := false
		for _, e := range list {
			ok = ok || e.Name == name && !e.IsSymlink && e.IsDir == (i < len(parts)-1)
		}
		if !ok {
			return false, nil
		}
		dir += "/" + name
	}
	return true, nil
}
