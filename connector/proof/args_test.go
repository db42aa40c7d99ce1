package proof

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"siyuan-broker/contract"
	"siyuan-broker/contract/tools"
)

// generator makes arguments for any action out of its parameters.
type generator struct {
	n *notes
	r *rand.Rand
}

func newGenerator(n *notes, seed uint64, purpose string) *generator {
	return &generator{n: n, r: rand.New(rand.NewPCG(seed, hash(purpose)))}
}

// arguments are argument objects for one action: the corners, and at most so many
// more out of each value of each parameter, on top of arguments that fit, and
// free combinations.
func (g *generator) arguments(a *tools.Action, most int) []json.RawMessage {
	corners := g.corners(a, most)
	var list []json.RawMessage
	for _, p := range a.Params {
		for _, v := range g.options(p) {
			list = append(list, encode(g.around(a, p.Name, v)))
		}
	}
	for range most/2 + 2 {
		list = append(list, encode(g.around(a, "", nil)), encode(g.free(a)))
	}
	slices.SortFunc(list, func(x, y json.RawMessage) int { return strings.Compare(string(x), string(y)) })
	list = slices.CompactFunc(list, func(x, y json.RawMessage) bool { return string(x) == string(y) })
	g.r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	list = append(corners, g.choose(a, list, most)...)
	for len(list) > 0 && len(list) < len(viewers()) { // so that each viewer asks
		list = append(list, list[0])
	}
	return list
}

// corners are the places that links to something hidden come together in, alone
// and with the members of enums and both booleans, as far as most allows.
func (g *generator) corners(a *tools.Action, most int) []json.RawMessage {
	var alone, list []json.RawMessage
	for _, p := range a.Params {
		if !p.Ref.IsID() || p.Legacy || p.Ref == tools.RefNotebook {
			continue
		}
		for _, name := range []string{"links", "linksP", "linksT", "linksE2", "alpha", "intro", "beta", "heading2", "entry", "tasksBlock"} {
			alone = append(alone, encode(g.around(a, p.Name, g.n.id(name))))
			for _, q := range a.Params {
				values := []any{}
				if q.Type == tools.Boolean {
					values = append(values, true, false)
				}
				for _, e := range q.Enum {
					values = append(values, e)
				}
				for _, v := range values {
					if args := g.minimal(a, map[string]any{p.Name: g.n.id(name), q.Name: v}); args != nil {
						list = append(list, encode(args))
					}
				}
			}
		}
	}
	g.r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return slices.Concat(g.textCorners(a), alone, list[:min(len(list), most)])
}

// textCorners are texts that make trouble in some places only: words of which a
// document has one and a hidden title in it the other, and references that the
// stored text of a block has already: first, before other writes take them away.
func (g *generator) textCorners(a *tools.Action) (list []json.RawMessage) {
	for _, args := range telling[a.ID()] {
		list = append(list, json.RawMessage(g.n.text(args)))
	}
	add := func(args map[string]any) {
		if args = g.minimal(a, args); args != nil {
			list = append(list, encode(args))
		}
	}
	list = append(list, g.namedCorners(a)...)
	for _, p := range a.Params {
		switch p.Name {
		case "query":
			for _, words := range []string{"lantern daybreak", "harbour nightfall"} {
				add(map[string]any{p.Name: words})
			}
		case "data":
			for _, text := range []string{"See " + ref(g.n, "secret", "'Operation Nightfall'"), "See " + ref(g.n, "secretP", `"my words"`), "bare " + ref(g.n, "secretP", "")} {
				for _, id := range []string{"linksP", "linksT"} {
					for _, at := range []string{"id", "parentID", "previousID"} {
						add(map[string]any{p.Name: text, "dataType": "markdown", at: g.n.id(id)})
					}
				}
			}
		}
	}
	return list
}

const boardView = `"avID":"${board}","blockID":"${boardBlock}","viewID":"${boardView}"`

// telling are arguments that no rule would make: those that take a text or an
// order which is there.
var telling = map[string][]string{
	"file.get_image_ocr_text":           {`{"path":"assets/desk-${asset}.txt"}`, `{"path":"/data/assets/desk-${asset}.txt?p=2"}`, `{"path":"assets/shared-${asset}.png"}`, `{"path":"assets/secret-${asset}.txt"}`, `{"path":"assets/own-${asset}.txt"}`},
	"file.download_asset":               {`{"path":"assets/desk-${asset}.txt"}`, `{"path":"assets/secret-${asset}.txt"}`, `{"path":"assets/own-${asset}.txt"}`},
	"file.export_resources":             {`{"paths":["assets/desk-${asset}.txt","/assets/desk-${asset}.txt"],"name":"x"}`, `{"paths":["assets/desk-${asset}.txt","assets/own-${asset}.txt"]}`},
	"file.export_md":                    {`{"id":"${links}"}`, `{"id":"${alpha}","download":true}`, `{"id":"${secret}"}`},
	"file.extract_doc":                  {`{"id":"${links}","download":true}`, `{"id":"${alpha}","download":true}`, `{"id":"${secret}","download":true}`, `{"id":"${alpha}"}`},
	"file.read_image":                   {`{"id":"${links}","path":"assets/dot-${asset}.png"}`, `{"id":"${links}","path":"assets/shared-${asset}.png"}`, `{"id":"${links}","path":"assets/desk-${asset}.txt"}`, `{"id":"${secret}","path":"assets/own-${asset}.txt"}`},
	"file.audit_image_refs":             {`{"id":"${links}","expectedRefs":["dot-${asset}.png","shared-${asset}.png","own-${asset}.txt"]}`, `{"id":"${secret}","expectedRefs":[]}`},
	"file.export_markdown_snapshot":     {`{"notebookID":"${desk}","roots":["/"],"limit":2}`, `{"notebookID":"${desk}","documentIDs":["${links}","${alpha}"]}`, `{"notebookID":"${desk}","documentIDs":["${secret}"]}`, `{"notebookID":"${hidden}","roots":["/"]}`},
	"file.upload_asset":                 {`{"id":"${alpha}","fileName":"a.txt","content":"YWJj"}`, `{"id":"${secret}","fileName":"a.txt","content":"YWJj"}`, `{"fileName":"a.txt","content":"YWJj"}`},
	"extension.validate_package":        {`{"package":{"type":"widget","manifest":{"name":"x"},"files":{"index.html":"x"}}}`},
	"document.ensure_link_targets":      {`{"notebook":"${desk}","parentId":"${alpha}","mode":"resolve","targets":[{"key":"a","id":"${beta}"},{"key":"b","id":"${secret}"},{"key":"c","id":"20240102100000-nothere"}]}`, `{"notebook":"${desk}","parentId":"${alpha}","mode":"reuse","targets":[{"key":"b","id":"${secret}"}]}`, `{"notebook":"${desk}","parentId":"${secret}","mode":"resolve","targets":[{"key":"a","id":"${beta}"}]}`, `{"notebook":"${desk}","parentId":"${alpha}","mode":"create","targets":[{"key":"a","title":"Operation Nightfall"}],"markdown":"See ((${secret}))."}`},
	"av.get_attribute_view_filter_sort": {`{"id":"${board}"}`, `{"id":"${board}","blockID":"${boardBlock}"}`},
	"av.set_cells": {
		`{"avID":"${board}","cells":[{"rowID":"${row_board_intro}","columnID":"${boardNote}","valueType":"text","text":"lantern"}]}`,
		`{"avID":"${board}","cells":[{"rowID":"${row_board_beta}","columnID":"${boardPick}","valueType":"select","option":"new"},{"rowID":"${row_board_beta}","columnID":"${boardNumber}","valueType":"number","number":0}]}`,
		`{"avID":"${board}","rowID":"${row_board_beta}","columnID":"${boardDay}","valueType":"date","date":"2026-11-30"}`,
		`{"avID":"${board}","rowID":"${row_tasks_secretP}","columnID":"${boardNote}","valueType":"text","text":"x"}`,
		`{"avID":"${board}","rowID":"${secretP}","columnID":"${boardNote}","valueType":"text","text":"x"}`,
	},
	"av.add_view": {`{"avID":"${board}","blockID":"${boardBlock}","viewID":"20260131120000-newview","layout":"kanban","name":"Lanes"}`},
	"av.set_filters": {
		`{` + boardView + `,"filters":[{"column":"${boardNote}","operator":"Contains","value":"lantern"}]}`, `{` + boardView + `,"filters":[]}`,
		`{` + boardView + `,"filters":[{"column":"${boardDark}","operator":"Is not empty"}]}`, `{` + boardView + `,"filters":[{"column":"${boardDarkRoll}","operator":"Contains","value":{"type":"rollup"}}]}`,
		`{` + boardView + `,"filters":[{"combination":"or","filters":[{"column":"${boardSprig}","operator":"=","value":"x"},{"column":"${boardNote}","operator":"Is empty"}]}]}`,
	},
	"av.set_sorts":             {`{` + boardView + `,"sorts":[{"column":"${boardNote}","order":"DESC"}]}`, `{` + boardView + `,"sorts":[{"column":"${boardDarkRoll}","order":"ASC"}]}`},
	"av.set_group":             {`{` + boardView + `,"group":{"field":"${boardPick}"}}`, `{` + boardView + `,"group":{"field":"${boardDark}"}}`, `{` + boardView + `,"group":{"field":""}}`},
	"av.set_column_visibility": {`{` + boardView + `,"keyID":"${boardDark}","hidden":true}`, `{` + boardView + `,"keyID":"${boardNote}","hidden":true}`},
	"av.set_column_order": {
		`{` + boardView + `,"keyIDs":["${boardTitle}","${boardSelect}","${boardNote}","${boardNumber}","${boardPick}","${boardDay}","${boardSprig}","${boardOwner}","${boardDark}","${boardRoll}","${boardDarkRoll}","${boardFree}"]}`,
		`{` + boardView + `,"keyIDs":["${boardTitle}","${boardNote}"]}`,
	},
	"av.set_column_options": {`{"avID":"${board}","keyID":"${boardPick}","options":[{"name":"New"}]}`, `{"avID":"${board}","keyID":"${boardPick}","options":[]}`},
	"av.duplicate_rows":     {`{"avID":"${crew}","sourceRowIDs":["${row_crew_loose}"]}`, `{"avID":"${board}","sourceRowIDs":["${row_board_intro}"]}`, `{"avID":"${dark}","sourceRowIDs":["${row_dark_loose}"]}`},
	"av.set_relation": {
		`{"avID":"${board}","keyID":"${boardOwner}","itemID":"${row_board_beta}","relatedItemIDs":["${row_crew_loose}"]}`, `{"avID":"${board}","keyID":"${boardOwner}","itemID":"${row_board_intro}","relatedItemIDs":[]}`,
		`{"avID":"${board}","keyID":"${boardDark}","itemID":"${row_board_intro}","relatedItemIDs":[]}`, `{"avID":"${board}","keyID":"${boardOwner}","itemID":"${row_board_intro}","relatedItemIDs":["${row_dark_loose}"]}`,
	},
	"av.configure_two_way_relation": {
		`{"avID":"${board}","keyID":"${boardFree}","destinationAvID":"${crew}","backRelationKeyID":"20260131120000-backkey","sourceName":"Free","destinationName":"Board"}`,
		`{"avID":"${board}","keyID":"${boardFree}","destinationAvID":"${dark}","backRelationKeyID":"20260131120000-backkey","sourceName":"Free","destinationName":"Board"}`,
		`{"avID":"${board}","keyID":"${boardDark}","destinationAvID":"${crew}","backRelationKeyID":"20260131120000-backkey","sourceName":"Free","destinationName":"Board"}`,
	},
	"av.configure_rollup": {
		`{"avID":"${board}","keyID":"${boardRoll}","relationKeyID":"${boardOwner}","destinationKeyID":"${crewAge}","calc":{"operator":"Sum"}}`,
		`{"avID":"${board}","keyID":"${boardRoll}","relationKeyID":"${boardDark}","destinationKeyID":"${darkNote}","calc":{"operator":""}}`,
		`{"avID":"${board}","keyID":"${boardRoll}","relationKeyID":"${boardOwner}","destinationKeyID":"${darkNote}","calc":{"operator":""}}`,
	},
	"av.set_new_item_templates": {
		`{"avID":"${board}","blockID":"${boardBlock}","templates":[{"id":"${boardErrand}","name":"Errand","targetType":"detached","fieldValues":{"${boardNote}":{"mode":"static","value":"x"}}}],"defaultTemplateID":""}`,
		`{"avID":"${board}","blockID":"${boardBlock}","templates":[{"id":"${boardDarkDocs}","name":"Dark","targetType":"document","saveLocation":{"boxID":"${vault}","path":"/x"}}],"defaultTemplateID":""}`,
		`{"avID":"${board}","blockID":"${boardBlock}","templates":[{"id":"${boardErrand}","name":"Errand","targetType":"detached","fieldValues":{"${boardDark}":{"mode":"static","value":["${row_dark_loose}"]}}}],"defaultTemplateID":""}`,
	},
	"av.create_from_template": {
		`{"avID":"${board}","blockID":"${boardBlock}","templateID":"${boardErrand}"}`, `{"avID":"${board}","blockID":"${boardBlock}","templateID":"${boardDocs}","viewID":"${boardView}"}`,
		`{"avID":"${board}","blockID":"${boardBlock}","templateID":"${boardDarkDocs}"}`,
	},
	"av.get":           {`{"id":"${board}"}`, `{"id":"${board}","blockID":"${boardBlock}"}`},
	"av.remove_rows":   {`{"avID":"${board}","srcIDs":["${row_board_intro}"]}`, `{"avID":"${board}","srcIDs":["${details}"]}`, `{"avID":"${board}","srcIDs":["${secretP}"]}`},
	"av.remove_column": {`{"avID":"${board}","keyID":"${boardNote}"}`, `{"avID":"${board}","keyID":"${tasksNote}"}`},
	"av.add_column":    {`{"avID":"${board}","keyName":"More","keyType":"text"}`},
	"av.add_rows":      {`{"avID":"${board}","blockIDs":["${item}"]}`, `{"avID":"${board}","blockIDs":["${secretP}"]}`, `{"avID":"${board}","primaryKeyTexts":["lantern"]}`},
	"av.render":        {`{"id":"${board}","query":"lantern"}`, `{"id":"${board}","query":"nightfall"}`, `{"id":"${board}","verbose":true}`},
	"block.replace": {
		`{"id":"${details}","old":"details","new":"particulars"}`, `{"id":"${linksP}","old":"static","new":"fixed"}`,
		`{"id":"${linksP}","old":"Nightfall","new":"x"}`, `{"id":"${linksZ}","old":"Last","new":"Final"}`, `{"id":"${item}","old":"lantern","new":"lamp"}`,
		`{"id":"${linksZ}","old":"words","new":"((${secretP}))"}`, `{"id":"${linksZ}","old":"words","new":"((${goneP}))"}`, `{"id":"${linksT}","old":"harbour","new":"port"}`,
	},
	"document.reorder":           {`{"parentID":"${projects}","orderedIDs":["${beta}","${alpha}"]}`, `{"parentID":"${projects}","orderedIDs":["${beta}","${secretAlpha}"]}`},
	"document.heading_to_doc":    {`{"headingID":"${heading2}","targetNotebook":"${desk}"}`, `{"headingID":"${linksH}","targetNotebook":"${desk}"}`, `{"headingID":"${linksH2}","targetNotebook":"${desk}"}`},
	"flashcard.create_card":      {`{"deckID":"","blockIDs":["${details}","${linksP}"]}`, `{"deckID":"${deck}","blockIDs":["${linksP}"]}`, `{"deckID":"","blockIDs":["${details}","${secretP}"]}`},
	"flashcard.remove_card":      {`{"deckID":"","blockIDs":["${details}"]}`, `{"deckID":"${deck}","blockIDs":["${intro}"]}`, `{"deckID":"","blockIDs":["${secretP}"]}`},
	"notebook.create":            {`{"name":"Books"}`, `{"name":"Log books","icon":"1f4d4"}`, `{"name":"Private"}`},
	"notebook.set_conf":          {`{"notebook":"${desk}","conf":{"dailyNoteSavePath":"/daily"}}`},
	"timeline.list_nodes":        {`{"scope":"all","documentId":"${alpha}"}`, `{"scope":"document","documentId":"${links}"}`, `{"scope":"document","documentId":"${secret}"}`, `{"scope":"global"}`},
	"timeline.create_node":       slices.Repeat([]string{`{"name":"lantern","scope":"document","documentId":"${alpha}"}`, `{"name":"lantern","scope":"global"}`, `{"name":"x","scope":"document","documentId":"${secret}"}`}, 3),
	"timeline.compare_node":      nodeTelling(``, `,"includeUnchanged":true`),
	"timeline.delete_node":       nodeTelling(``),
	"timeline.rollback_document": nodeTelling(``),
	"timeline.rollback_block":    nodeTelling(`,"changeKey":"modified:${linksZ}:${linksZ}"`, `,"changeKey":"modified:${code}:${code}"`, `,"changeKey":"modified:${secretP}:${secretP}"`),
	"search.find_replace": {
		`{"k":"harbour","r":"port","ids":["${alpha}","${beta}"]}`, `{"k":"Nightfall","r":"x","ids":["${links}"]}`, `{"k":"Last","r":"Final","ids":["${links}"]}`,
		`{"k":"Operation","r":"x","ids":["${namesake}"],"replaceTypes":{"docTitle":true}}`,
	},
}

// minimal adds to some arguments no more than the contract demands; nil if
// readable values do not make them valid.
func (g *generator) minimal(a *tools.Action, args map[string]any) map[string]any {
	for _, p := range a.Params {
		if _, set := args[p.Name]; !set && p.Required {
			args[p.Name] = g.readable(p)
		}
	}
	if _, invalid := a.Validate(encode(args)); invalid != nil {
		return nil
	}
	return args
}

// free sets any parameters to any values.
func (g *generator) free(a *tools.Action) map[string]any {
	args := map[string]any{}
	for _, p := range a.Params {
		if p.Required && g.r.IntN(20) > 0 || !p.Required && g.r.IntN(3) == 0 {
			args[p.Name] = pick(g, g.options(p))
		}
	}
	return args
}

// choose takes arguments of three kinds by turns: those that point at what the
// caller may not see, others, and, half as often, those that the contract
// refuses.
func (g *generator) choose(a *tools.Action, list []json.RawMessage, most int) []json.RawMessage {
	secret := []string{"/Private", "/Operation Nightfall"}
	for _, name := range slices.Concat(g.n.secret, g.n.gone, []string{"hidden"}) {
		secret = append(secret, g.n.id(name))
	}
	var pointed, plain, refused []json.RawMessage
	for _, args := range list {
		_, invalid := a.Validate(args)
		switch {
		case invalid != nil:
			refused = append(refused, args)
		case slices.ContainsFunc(secret, func(id string) bool { return strings.Contains(string(args), id) }):
			pointed = append(pointed, args)
		default:
			plain = append(plain, args)
		}
	}
	var chosen []json.RawMessage
	for len(chosen) < most && len(pointed)+len(plain)+len(refused) > 0 {
		for _, from := range []*[]json.RawMessage{&pointed, &plain, &pointed, &plain, &refused} {
			if len(*from) > 0 {
				chosen, *from = append(chosen, (*from)[0]), (*from)[1:]
			}
		}
	}
	return chosen
}

// around makes arguments that the contract accepts, if it can, with one
// parameter set to a value; "" sets none.
func (g *generator) around(a *tools.Action, name string, value any) map[string]any {
	var args map[string]any
	for range 60 {
		args = g.base(a)
		if name != "" {
			args[name] = value
		}
		if _, invalid := a.Validate(encode(args)); invalid == nil {
			return args
		}
	}
	return args
}

// base is an example of the contract with readable things in place of its ids,
// or readable values for a random choice of parameters.
func (g *generator) base(a *tools.Action) map[string]any {
	args := map[string]any{}
	if len(a.Examples) > 0 && g.r.IntN(2) == 0 {
		if json.Unmarshal([]byte(pick(g, a.Examples)), &args) == nil {
			for _, p := range a.Params {
				if v, ok := args[p.Name]; ok {
					args[p.Name] = g.resettle(p, v)
				}
			}
		}
	}
	for _, p := range a.Params {
		if _, set := args[p.Name]; !set && (p.Required || g.r.IntN(4) == 0 && !p.Legacy) {
			args[p.Name] = g.readable(p)
		}
	}
	return args
}

// resettle puts readable ids where an example has ids.
func (g *generator) resettle(p tools.Param, v any) any {
	switch v := v.(type) {
	case string:
		if contract.IsID(v) || p.Ref != tools.NoRef {
			return g.readable(p)
		}
	case []any:
		for i := range v {
			v[i] = g.resettle(*orAny(p.Items), v[i])
		}
	case map[string]any:
		for _, f := range p.Fields {
			if m, ok := v[f.Name]; ok {
				v[f.Name] = g.resettle(f, m)
			}
		}
	}
	return v
}

func orAny(p *tools.Param) *tools.Param {
	if p == nil {
		return &tools.Param{Type: tools.Any}
	}
	return p
}

// readable is a value that a viewer may expect an answer for.
func (g *generator) readable(p tools.Param) any {
	switch {
	case p.Ref.IsID():
		return pick(g, g.readableIDs(p.Ref))
	case p.Ref == tools.RefPart:
		return pick(g, g.parts(p))
	case p.Ref == tools.RefPath:
		return pick(g, []string{"/", g.n.path(doc{name: "projects"}), g.n.path(doc{name: "alpha", parent: "projects"}), g.n.path(doc{name: "links"})})
	case p.Ref == tools.RefHuman:
		return pick(g, g.named())
	case p.Ref == tools.RefAsset:
		return pick(g, g.n.assets()[1:2])
	case p.Ref == tools.RefTemplate:
		return g.n.templates()[1]
	case len(p.Enum) > 0:
		return pick(g, p.Enum)
	}
	switch p.Type {
	case tools.String:
		return pick(g, g.words(p))
	case tools.Integer, tools.Number:
		low := 1.0
		if p.Min != nil {
			low = *p.Min
		}
		if p.Max != nil && *p.Max >= low {
			return low + float64(g.r.IntN(int(min(*p.Max-low, 64))+1))
		}
		return low + float64(g.r.IntN(40))
	case tools.Boolean:
		return g.r.IntN(2) == 0
	case tools.Array:
		list := []any{}
		for range max(p.MinLen, 1+g.r.IntN(2)) {
			list = append(list, g.readable(itemOf(p)))
		}
		return list
	case tools.Object:
		return g.object(p)
	case tools.Map:
		return map[string]any{pick(g, mapKeys): g.readable(itemOf(p))}
	}
	return pick(g, []any{"lantern", 1, true, []any{}, map[string]any{"content": "lantern"}})
}

func (g *generator) object(p tools.Param) map[string]any {
	m := map[string]any{}
	for _, f := range p.Fields {
		if f.Required || g.r.IntN(2) == 0 {
			m[f.Name] = g.readable(f)
		}
	}
	return m
}

var mapKeys = []string{"p", "h", "d", "paragraph", "document", "heading", "embedBlock", "av", "text", "docTitle", "custom-note", "custom-link", "memo", "name", "alias", "bookmark", "h1", "o", ".png", ".txt", "title"}

func (g *generator) readableIDs(ref tools.Ref) []string {
	var names []string
	switch ref {
	case tools.RefNotebook:
		names = []string{"desk", "desk", "diary", "shut"}
	case tools.RefDoc:
		names = []string{"alpha", "links", "links", "projects", "beta", "namesake", "entry", "linksP"}
	case tools.RefDatabase:
		names = []string{"board", "board", "board", "board", "crew", "tasks", "vault"}
	case tools.RefPlace:
		names = []string{"desk", "alpha", "projects", "beta", "diary"}
	default:
		names = append(slices.Clone(g.n.visible), "desk", "links", "linksP", "linksH", "linksE2", "alpha", "intro")
		names = append(names, g.n.rows...)
	}
	ids := make([]string, len(names))
	for i, name := range names {
		ids[i] = g.n.id(name)
	}
	return ids
}

// parts are columns or rows of the database that can be read.
func (g *generator) parts(p tools.Param) []string {
	names := []string{"row_board_intro", "row_board_details", "row_board_beta"}
	if strings.Contains(p.Name, "eyID") || strings.Contains(p.Name, "olumnID") {
		names = []string{"boardNote", "boardNumber", "boardPick", "boardDay", "boardSprig", "boardOwner", "boardDark", "boardRoll", "boardDarkRoll", "boardFree"}
	}
	for i, name := range names {
		names[i] = g.n.id(name)
	}
	return names
}

// options are the values worth a try for a parameter: every member of an enum,
// both booleans, bounds and what is beyond them, things that are readable,
// hidden, closed, gone and malformed.
func (g *generator) options(p tools.Param) []any {
	var list []any
	add := func(vs ...any) { list = append(list, vs...) }
	switch {
	case p.Ref.IsID():
		for range 6 {
			add(pick(g, g.readableIDs(p.Ref)))
		}
		for _, id := range g.forbidden() {
			add(id)
		}
		add("not-an-id", "")
		return list
	case p.Ref == tools.RefPart:
		for _, id := range append(g.parts(p), g.forbidden()...) {
			add(id)
		}
		return list
	case p.Ref == tools.RefPath:
		for _, s := range g.paths() {
			add(s)
		}
		return list
	case p.Ref == tools.RefHuman:
		for _, s := range append(g.named(), g.misnamed()...) {
			add(s)
		}
		return list
	case p.Ref == tools.RefAsset:
		for _, s := range append(g.n.assets(), g.misfiled()...) {
			add(s)
		}
		return list
	case p.Ref == tools.RefTemplate:
		for _, s := range append(g.n.templates(), "nosuch.md", "../../conf/conf.json", "%2e%2e/x.md", "/data/templates/"+g.n.templates()[1], ".x.md", "") {
			add(s)
		}
		return list
	case len(p.Enum) > 0:
		for _, e := range p.Enum {
			add(e)
		}
		add("nonsense")
		return list
	}
	switch p.Type {
	case tools.String:
		for _, w := range g.words(p) {
			add(w)
		}
	case tools.Integer, tools.Number:
		add(0, 1, 2, 7, -1, 1.5, 1<<40)
		if p.Min != nil {
			add(*p.Min, *p.Min-1)
		}
		if p.Max != nil {
			add(*p.Max, *p.Max+1)
		}
	case tools.Boolean:
		add(true, false, "maybe")
	case tools.Array:
		item := itemOf(p)
		options := g.options(item)
		for _, o := range options {
			add([]any{o})
		}
		add([]any{}, []any{g.readable(item), pick(g, options)}, []any{pick(g, options), g.readable(item)}, []any{pick(g, options), pick(g, options), pick(g, options)})
	case tools.Object:
		add(map[string]any{}, g.object(p))
		for _, f := range p.Fields {
			for _, o := range g.options(f) {
				m := g.object(p)
				m[f.Name] = o
				add(m)
			}
		}
	case tools.Map:
		add(map[string]any{})
		for _, k := range mapKeys {
			add(map[string]any{k: pick(g, g.options(itemOf(p)))})
		}
	default:
		add("nightfall", 1, true, []any{g.n.id("secretP")}, map[string]any{"text": map[string]any{"content": "nightfall"}}, map[string]any{"relation": map[string]any{"blockIDs": []any{g.n.id("secretP")}}})
	}
	return list
}

func itemOf(p tools.Param) tools.Param { return *orAny(p.Items) }

// forbidden are ids of what is hidden, closed or nowhere.
func (g *generator) forbidden() []string {
	ids := []string{g.n.hidden, g.n.id("secret"), g.n.id("secretP"), g.n.id("nowhere"), g.n.id("gone"), g.n.id("shutP")}
	return append(ids, g.n.id(pick(g, g.n.secret)), g.n.id(pick(g, g.n.secret)))
}

// paths are storage paths, right and wrong.
func (g *generator) paths() []string {
	n := g.n
	return []string{
		"/", n.path(doc{name: "alpha", parent: "projects"}), n.path(doc{name: "links"}), n.path(doc{name: "entry"}), n.path(doc{name: "secret"}),
		n.path(doc{name: "secretAlpha", parent: "secretProjects"}), n.path(doc{name: "alpha", parent: "secretProjects"}), "/" + n.desk + ".sy", "/" + n.hidden + ".sy",
		n.path(doc{name: "nowhere"}), n.hidden + n.path(doc{name: "secret"}), "/../" + n.hidden + n.path(doc{name: "secret"}), "no/path", "",
	}
}

// words are texts for a parameter, chosen by what its name and sentence say it
// is; a parameter that says nothing gets some of everything.
func (g *generator) words(p tools.Param) []string {
	n := g.n
	about := strings.ToLower(p.Name + " " + p.Doc)
	says := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(about, w) })
	}
	queries := []string{
		"nightfall", "orpheus", "daybreak", "lantern", "harbour", "Alpha", "Operation Nightfall", "unavailable", "Entry", "书", "shared/boat", "#shared/boat#",
		"harbour nightfall", "lantern daybreak", "Details Nightfall", "confidential OR lantern", `"confidential nightfall"`, "night*", "(harbour AND alpha) NOT daybreak", "a", "",
		"n.ghtfall", "(unclosed", `\bAlpha\b`, "%", "_", "'", n.id("secretP"), n.id("linksP"), "Gone", "plan", "Review",
	}
	readable := []string{"/Projects/Alpha", "/Operation Nightfall", "/Projects", "/", "/Projects/Nosuch", "/Desk/Projects", "/Private/Operation Nightfall", "Projects", "/Harbour log/../Entry"}
	boxes := []string{n.desk, n.hidden, n.diary, n.desk + n.path(doc{name: "links"}), n.hidden + n.path(doc{name: "secret"}), n.id("nowhere"), n.desk + "/" + n.id("alpha"), "nonsense", n.shut}
	files := append(n.assets(), "assets/nosuch.png", "/data/"+n.hidden, "shared", "secret-", "../conf/conf.json",
		"alpha-template"+n.salt, "nightfall-template"+n.salt, "nosuch-template")
	texts := []string{
		"A plain lantern line.", "See " + ref(n, "secretP", `"x"`), "See " + ref(n, "secret", "'Operation Nightfall'"), "See " + ref(n, "nowhere", `"x"`), "See " + ref(n, "intro", `"x"`), "bare " + ref(n, "secretP", ""), "bare " + ref(n, "alpha", ""),
		"{{select * from blocks where id='" + n.id("secretP") + "'}}", "{{select * from blocks where content like '%nightfall%'}}", "{{select * from blocks where id='" + n.id("nowhere") + "'}}",
		"![x](" + n.assets()[2] + ")", "![x](assets/nosuch.png)", "[x](siyuan://blocks/" + n.id("secretP") + ")", "", "# Heading", "two\n\nblocks", "- item",
		`<div data-node-id="` + n.id("fresh") + `" data-type="NodeParagraph" class="p"><div contenteditable="true" spellcheck="false">dom <span data-type="block-ref" data-id="` + n.id("secretP") + `" data-subtype="d">x</span></div></div>`,
		`<div class="av" data-node-id="` + n.id("freshAV") + `" data-type="NodeAttributeView" data-av-id="` + n.id("vault") + `" data-av-type="table"></div>`,
	}
	labels := []string{"shared/boat", "shared", "orpheus/secret", "daybreak", "diary", "Review", "Nightfall list", "alpha-intro", "plan", "nosuch", "custom-phase", "custom-link", "Vault of nightfall", "Tasks"}
	switch {
	case says("select over", "stmt", "sql "):
		return statements(n)
	case says("notebook ids, or"):
		return boxes
	case says("readable path", "hpath", "readable or storage"):
		return slices.Concat(readable, g.paths())
	case says("asset", "template", "file", "extension", "cover", "icon"):
		return files
	case says("title", "name of", "new title"):
		return []string{"Alpha", "Operation Nightfall", "A new title", "a/b", strings.Repeat("x", 600), ""}
	case says("tag", "label", "bookmark", "name"):
		return labels
	case says("look for", "query", "keyword", "old text", "part of", "text as shown", "keep only"):
		return queries
	case says("text", "data", "markdown", "value", "replacement", "message"):
		return texts
	}
	mixed := slices.Concat(queries, readable, boxes, files, texts, labels, statements(n)[:6], g.forbidden(), g.paths())
	g.r.Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
	return append(mixed[:24:24], n.id(pick(g, n.visible)), n.id("secretP"), "nightfall", "lantern")
}

func ref(n *notes, name, anchor string) string {
	if anchor == "" {
		return "((" + n.id(name) + "))"
	}
	return "((" + n.id(name) + " " + anchor + "))"
}

// statements are ways to ask SQL about what is hidden.
func statements(n *notes) []string {
	list := []string{
		"SELECT id, content FROM blocks ORDER BY id", "SELECT count(*) FROM blocks", "SELECT box, count(*) AS n FROM blocks GROUP BY box ORDER BY box", "SELECT * FROM blocks WHERE content LIKE '%nightfall%' ORDER BY id",
		"SELECT * FROM blocks WHERE box = '${hidden}'", "SELECT id FROM blocks WHERE id = '${secretP}'", "SELECT content, markdown, fcontent FROM blocks WHERE type = 'query_embed' ORDER BY id",
		"SELECT markdown FROM blocks WHERE root_id = '${links}' ORDER BY id", "SELECT * FROM refs ORDER BY id", "SELECT def_block_id, count(*) AS n FROM refs GROUP BY def_block_id ORDER BY def_block_id",
		"SELECT b.id, r.content FROM blocks b JOIN refs r ON r.def_block_id = b.id ORDER BY b.id, r.id", "SELECT * FROM attributes ORDER BY id", "SELECT * FROM spans WHERE type LIKE '%ref%' ORDER BY id", "SELECT * FROM assets ORDER BY id",
		"SELECT DISTINCT tag FROM blocks ORDER BY tag", "SELECT content FROM blocks WHERE id IN (SELECT def_block_id FROM refs) ORDER BY id", "SELECT id FROM blocks WHERE content MATCH 'nightfall' ORDER BY id",
		"SELECT id FROM blocks_fts WHERE blocks_fts MATCH 'nightfall'", "SELECT * FROM main.blocks", "SELECT * FROM stat", "SELECT * FROM block_embeddings", "SELECT * FROM sqlite_master", "SELECT * FROM file_annotation_refs",
		"SELECT id FROM blocks UNION SELECT id FROM blocks WHERE box='${hidden}' ORDER BY 1", "WITH x AS (SELECT * FROM blocks) SELECT count(*) FROM x", "WITH blocks AS (SELECT 1 AS id) SELECT * FROM blocks",
		"SELECT max(rowid), min(rowid) FROM blocks", "SELECT id FROM blocks ORDER BY rowid DESC LIMIT 3", "SELECT (SELECT count(*) FROM blocks WHERE content LIKE '%daybreak%') AS n", "SELECT nosuch FROM blocks", "SELECT FROM", "DELETE FROM blocks RETURNING id",
		"SELECT id FROM blocks LIMIT 5, 3", "SELECT total_changes(), last_insert_rowid()", "SELECT CASE WHEN EXISTS (SELECT 1 FROM blocks WHERE box='${hidden}') THEN 1 ELSE json('{') END", "SELECT randomblob(4) FROM blocks LIMIT 1",
	}
	for i := range list {
		list[i] = n.text(list[i])
	}
	return list
}

func pick[T any](g *generator, list []T) T { return list[g.r.IntN(len(list))] }

func encode(args map[string]any) json.RawMessage {
	raw, err := json.Marshal(args)
	if err != nil {
		panic(fmt.Sprintf("generated arguments do not marshal: %v", err))
	}
	return raw
}
