package guard

import (
	"context"
	"errors"

	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
)

// Database is an attribute view whose level is proven in every notebook that
// shows it or has a block in it.
type Database struct {
	s      *Session
	id     siyuan.ID
	level  contract.Level
	blocks []siyuan.ID // the blocks that show it
	file   siyuan.AttributeView
}

// ID is the database's id.
func (d Database) ID() string { return string(d.id) }

// Level is the least of the caller's levels in the notebooks concerned.
func (d Database) Level() contract.Level { return d.level }

// Database proves a level for a database. One that nothing shows, or that a
// hidden notebook shows or has a block in, does not exist. Finding that out takes
// as many kernel calls as there are such notebooks, so they are not counted.
func (s *Session) Database(ctx context.Context, id string, need contract.Level) (Database, error) {
	ctx = siyuan.Uncounted(ctx)
	d := Database{s: s, id: siyuan.ID(id), level: contract.ReadWriteDelete}
	missing := notFound("database", d.id)
	if !d.id.Valid() {
		return Database{}, missing
	}
	defs, err := s.g.r.MirrorBlocks(ctx, d.id)
	if err != nil {
		return Database{}, orNotFound(err, missing)
	}
	for _, def := range defs {
		d.blocks = append(d.blocks, def.RefID)
	}
	if d.file, err = s.g.r.AttributeView(ctx, d.id); err != nil {
		return Database{}, orNotFound(err, missing)
	}
	bound := boundBlocks(d.file)
	if _, err := s.readable(ctx, append(bound, d.blocks...)); err != nil {
		return Database{}, err
	}
	boxes := s.boxesOf(append(bound, d.blocks...))
	if len(s.boxesOf(d.blocks)) == 0 {
		return Database{}, missing
	}
	for _, box := range boxes {
		d.level = min(d.level, s.level(box))
	}
	if d.level == contract.None {
		return Database{}, missing
	}
	for _, box := range boxes {
		s.touch(box)
		if err := s.prove(box, need); err != nil {
			return Database{}, err
		}
	}
	return d, nil
}

func orNotFound(err, missing error) error {
	if errors.Is(err, siyuan.Missing) {
		return missing
	}
	return err
}

// boundBlocks are the blocks that are rows of a database.
func boundBlocks(av siyuan.AttributeView) (ids []siyuan.ID) {
	for _, kv := range av.KeyValues {
		for _, v := range kv.Values {
			if v.Block != nil && v.Block.ID != "" && !v.IsDetached {
				ids = append(ids, v.Block.ID)
			}
		}
	}
	return ids
}

// boxesOf are the notebooks of located blocks; missing ones are in none.
func (s *Session) boxesOf(ids []siyuan.ID) []siyuan.ID {
	s.mu.Lock()
	defer s.mu.Unlock()
	var boxes []siyuan.ID
	for _, id := range ids {
		if p, known := s.places[id]; known && p.err == nil {
			boxes = append(boxes, p.box)
		}
	}
	return unique(boxes)
}

// own checks that a database was proven by this session, with the level.
func (s *Session) own(d Database, need contract.Level) error {
	if d.s != s {
		return contract.Internalf(errors.New("guard: reference of another session"), "use database")
	}
	if !d.level.Allows(need) {
		return contract.Internalf(errors.New("guard: database proven for less"), "use database")
	}
	return nil
}

// ShownBy demands that a block shows the database.
func (d Database) ShownBy(b Block) error {
	for _, id := range d.blocks {
		if id == b.id {
			return nil
		}
	}
	return contract.Fail(contract.InvalidTarget, "Block %s does not show database %s.", b.ID(), d.ID()).
		WithDetail(map[string]any{"blockIDs": d.blocks}).WithHint("Leave blockID out, or give one of detail.blockIDs.")
}

// Blocks are the blocks that show the database.
func (d Database) Blocks() []string {
	ids := make([]string, len(d.blocks))
	for i, id := range d.blocks {
		ids[i] = string(id)
	}
	return ids
}
