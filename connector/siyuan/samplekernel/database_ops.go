package samplekernel

import (
	"encoding/json"
	"errors"

	"siyuan-broker/connector/siyuan/samplekernel/av"
	"siyuan-broker/connector/siyuan/samplekernel/text"
)

// applyDatabase carries out the operations on databases; others are unknown
// and passed over.
func (k *Kernel) applyDatabase(op *operation) error {
	switch op.Action {
	case "setAttrViewName":
		if db, ok := k.database(op.ID); ok {
			db.Name, _ = op.Data.(string)
			return k.saveDatabase(db)
		}
	case "updateAttrViewColRelation":
		return k.relate(op)
	case "addAttrViewView":
		return k.addView(op)
	case "setAttrViewViewName":
		return k.changeDatabase(op, func(db *av.Database) error {
			if v := db.View(op.ID); v.ID == op.ID {
				v.Name = op.dom()
			}
			return nil
		})
	case "setAttrViewColHidden":
		return k.changeDatabase(op, func(db *av.Database) error {
			hidden, _ := op.Data.(bool)
			k.viewShown(db, op.BlockID).Hide(op.ID, hidden)
			return nil
		})
	case "sortAttrViewCol":
		return k.changeDatabase(op, func(db *av.Database) error {
			k.viewShown(db, op.BlockID).Move(op.ID, op.PreviousID)
			return nil
		})
	case "duplicateAttrViewRow":
		return k.copyRow(op)
	case "setAttrViewNewItemTemplates":
		return k.setTemplates(op)
	case "updateAttrViewColOptions":
		var list []*av.Option
		if remarshal(op.Data, &list) != nil {
			return nil
		}
		return k.changeKey(op, func(key *av.Key) { key.SetOptions(list) })
	case "removeAttrViewColOption":
		return k.changeDatabase(op, func(db *av.Database) error {
			if c, ok := db.Column(op.ID); ok {
				c.RemoveOption(op.dom())
			}
			return nil
		})
	case "removeAttrViewCol":
		return k.removeColumn(op)
	case "updateAttrViewColRollup":
		var data struct{ Calc *av.Calc }
		if remarshal(op.Data, &data) != nil {
			return nil
		}
		return k.changeKey(op, func(key *av.Key) {
			key.Rollup = &av.Rollup{RelationKeyID: op.ParentID, KeyID: op.KeyID, Calc: data.Calc}
		})
	case "updateAttrViewColTemplate":
		return k.changeKey(op, func(key *av.Key) { key.Template = op.dom() })
	case "updateAttrViewCol":
		return k.changeKey(op, func(key *av.Key) { key.Name, key.Type = op.Name, op.Type })
	case "updateAttrViewColNumberFormat":
		return k.changeKey(op, func(key *av.Key) { key.NumberFormat = op.Format })
	}
	return nil
}

// addView adds a view, which becomes the current one and that of the block.
func (k *Kernel) addView(op *operation) error {
	db, ok := k.database(op.AvID)
	if !ok {
		return nil
	}
	db.AddView(op.ID, op.Layout, k.maker())
	if p, ok := k.block(op.BlockID); ok && db.ViewID == op.ID {
		if err := k.setAttrs(p, map[string]string{"custom-sy-av-view": op.ID}); err != nil {
			return err
		}
	}
	return k.saveDatabase(db)
}

// viewShown is the view that a block shows, else the current one.
func (k *Kernel) viewShown(db *av.Database, block string) *av.View {
	view := ""
	if p, ok := k.block(block); ok {
		view = text.Attr(p.node, "custom-sy-av-view")
	}
	return db.View(view)
}

// relate ties a relation column to a database, and of a two-way relation a column
// there to it: one of its own name, which is made where it is not there yet.
func (k *Kernel) relate(op *operation) error {
	db, ok := k.database(op.AvID)
	if !ok {
		return nil
	}
	c, ok := db.Column(op.KeyID)
	if !ok {
		return nil
	}
	c.Key.Name = op.Format
	c.Key.Relation = &av.Relation{AvID: op.ID, IsTwoWay: op.IsTwoWay, BackKeyID: op.BackRelationKeyID}
	other := db
	if op.ID != op.AvID {
		if other, ok = k.database(op.ID); !ok {
			return k.saveDatabase(db)
		}
	}
	if op.IsTwoWay {
		back, there := other.Column(op.BackRelationKeyID)
		if !there {
			other.AddKey(&av.Key{ID: op.BackRelationKeyID, Type: "relation"}, other.LastKey())
			back, _ = other.Column(op.BackRelationKeyID)
		}
		back.Key.Name, back.Key.Relation = op.Name, &av.Relation{AvID: db.ID, IsTwoWay: true, BackKeyID: op.KeyID}
		for _, v := range c.Values {
			if v.Relation != nil {
				other.LinkBack(op.BackRelationKeyID, v.BlockID, v.Relation.BlockIDs, k.maker())
			}
		}
	}
	return errors.Join(k.saveDatabase(db), k.saveDatabase(other))
}

// linkBack carries what a cell of a two-way relation says over to the other
// database, or to the other column of the same one.
func (k *Kernel) linkBack(db *av.Database, keyID string, v *av.Value) error {
	c, ok := db.Column(keyID)
	if !ok || c.Key.Relation == nil || !c.Key.Relation.IsTwoWay || v.Relation == nil {
		return nil
	}
	r := c.Key.Relation
	if r.AvID == db.ID {
		db.LinkBack(r.BackKeyID, v.BlockID, v.Relation.BlockIDs, k.maker())
		return nil
	}
	other, ok := k.database(r.AvID)
	if !ok {
		return nil
	}
	other.LinkBack(r.BackKeyID, v.BlockID, v.Relation.BlockIDs, k.maker())
	return k.saveDatabase(other)
}

func (k *Kernel) copyRow(op *operation) error {
	if len(op.SrcIDs) == 0 {
		return nil
	}
	return k.changeDatabase(op, func(db *av.Database) error {
		db.CopyRow(op.ID, op.SrcIDs[0], op.PreviousID, k.maker(), k.lookup())
		for _, c := range db.Columns {
			if v, ok := c.Value(op.ID); ok {
				if err := k.linkBack(db, c.Key.ID, v); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

func (k *Kernel) setTemplates(op *operation) error {
	var data struct {
		Templates         []*av.ItemTemplate
		DefaultTemplateID string
	}
	if remarshal(op.Data, &data) != nil {
		return nil
	}
	db, ok := k.database(op.AvID)
	if !ok || db.SetTemplates(data.Templates, data.DefaultTemplateID) != nil {
		return nil
	}
	return k.saveDatabase(db)
}

// remarshal reads what came as any JSON into a type; nothing is nothing.
func remarshal(data, into any) error {
	raw, err := json.Marshal(data)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, into)
}

// changeDatabase changes the database that an operation names; a missing one is
// passed over.
func (k *Kernel) changeDatabase(op *operation, change func(db *av.Database) error) error {
	db, ok := k.database(op.AvID)
	if !ok {
		return nil
	}
	if err := change(db); err != nil {
		return err
	}
	return k.saveDatabase(db)
}

// removeColumn takes a column out, and with removeDest the other column of a
// two-way relation.
func (k *Kernel) removeColumn(op *operation) error {
	db, ok := k.database(op.AvID)
	if !ok {
		return nil
	}
	c, ok := db.Column(op.ID)
	if !ok {
		return nil
	}
	if r := c.Key.Relation; r != nil && r.IsTwoWay && op.RemoveDest {
		if other, ok := k.database(r.AvID); ok && other.RemoveKey(r.BackKeyID) == nil {
			if err := k.saveDatabase(other); err != nil {
				return err
			}
		}
		if db, ok = k.database(op.AvID); !ok {
			return nil
		}
	}
	if err := db.RemoveKey(op.ID); err != nil {
		return err
	}
	return k.saveDatabase(db)
}

// changeKey changes a column an operation names by its id.
func (k *Kernel) changeKey(op *operation, change func(key *av.Key)) error {
	db, ok := k.database(op.AvID)
	if !ok {
		return nil
	}
	c, ok := db.Column(op.ID)
	if !ok {
		return nil
	}
	change(c.Key)
	return k.saveDatabase(db)
}
