package av

import (
	"bytes"
	"encoding/json"
	"time"

	"siyuan-broker/connector/guard"
	"siyuan-broker/contract"
)

// given reads a cell that an agent wrote for a column: as render shows one, or in
// SiYuan's own form, which names its type. nil for none.
func given(k guard.Column, raw json.RawMessage, path string, zone *time.Location) (*guard.CellValue, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	bad := contract.InvalidFields(contract.Field{Path: path, Message: "is no cell of a column of type " + k.Type})
	var typed struct{ Type string }
	if json.Unmarshal(raw, &typed) == nil && typed.Type != "" {
		v := guard.CellValue{}
		if typed.Type != k.Type || json.Unmarshal(raw, &v) != nil {
			return nil, bad
		}
		return &v, nil
	}
	v := guard.CellValue{Type: k.Type}
	into := func(p any) bool { return json.Unmarshal(raw, p) == nil }
	fits := false
	switch k.Type {
	case "number":
		v.Number = &guard.CellNumber{IsNotEmpty: true}
		fits = into(&v.Number.Content)
	case "checkbox":
		v.Checkbox = &guard.CellTick{}
		fits = into(&v.Checkbox.Checked)
	case "select", "mSelect":
		fits = chosen(&v, into)
	case "mAsset":
		fits = into(&v.Assets)
	case "relation":
		v.Relation = &guard.CellRelation{}
		fits = into(&v.Relation.BlockIDs) || into(v.Relation)
	case "date", "created", "updated":
		d, err := day(raw, path, zone)
		if err != nil {
			return nil, err
		}
		fits = true
		switch k.Type {
		case "created":
			v.Created = d
		case "updated":
			v.Updated = d
		default:
			v.Date = d
		}
	default:
		var text string
		fits = into(&text) && say(&v, k.Type, text)
	}
	if !fits {
		return nil, bad
	}
	return &v, nil
}

// chosen reads the name of an option, or several.
func chosen(v *guard.CellValue, into func(any) bool) bool {
	var one string
	var names []string
	if into(&one) {
		names = []string{one}
	} else if !into(&names) {
		return false
	}
	v.Select = []guard.CellOption{}
	for _, n := range names {
		v.Select = append(v.Select, guard.CellOption{Content: n})
	}
	return true
}

// say puts a text into a cell that is nothing but text.
func say(v *guard.CellValue, kind, text string) bool {
	t := &guard.CellText{Content: text}
	switch kind {
	case "text":
		v.Text = t
	case "url":
		v.URL = t
	case "email":
		v.Email = t
	case "phone":
		v.Phone = t
	case "template":
		v.Template = t
	case "block":
		v.Block = &guard.CellTitle{Content: text}
	default:
		return false
	}
	return true
}

// day reads a date, or a range as render shows one.
func day(raw json.RawMessage, path string, zone *time.Location) (*guard.CellDate, error) {
	span := struct{ Start, End json.RawMessage }{Start: raw}
	if bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{")) {
		span.Start = nil
		if err := json.Unmarshal(raw, &span); err != nil {
			return nil, contract.InvalidFields(contract.Field{Path: path, Message: "must be a date, or an object with start and end"})
		}
	}
	start, withTime, err := moment(span.Start, path, zone)
	if err != nil {
		return nil, err
	}
	end, _, err := moment(span.End, path, zone)
	if err != nil {
		return nil, err
	}
	d := &guard.CellDate{IsNotTime: !withTime}
	if start != nil {
		d.Content, d.IsNotEmpty = start.UnixMilli(), true
	}
	if end != nil {
		d.Content2, d.IsNotEmpty2, d.HasEndDate = end.UnixMilli(), true, true
	}
	return d, nil
}
