package samplekernel

import (
	"regexp"
	"strings"

	"siyuan-broker/connector/siyuan/samplekernel/text"
)

func attrRoutes() map[string]route {
	return map[string]route{
		"/api/attr/getBlockAttrs":      {serve: getBlockAttrs},
		"/api/attr/batchGetBlockAttrs": {serve: batchGetBlockAttrs},
		"/api/attr/setBlockAttrs":      {serve: setBlockAttrs, write: true},
		"/api/attr/batchSetBlockAttrs": {serve: batchSetBlockAttrs, write: true},
		"/api/attr/getBookmarkLabels":  {serve: getBookmarkLabels, noBody: true},
	}
}

// attrs lists the attributes of a block with the computed names of databases.
func (k *Kernel) attrs(p place) map[string]string {
	m := text.Attrs(p.node)
	if avs := m["custom-avs"]; avs != "" {
		if names := k.databaseNames(avs); names != "" {
			m["av-names"] = names
		}
	}
	return m
}

func getBlockAttrs(k *Kernel, a args) (any, error) {
	id := a.str("id")
	if !text.ValidID(id) {
		return nil, fail(msgBadID)
	}
	if p, ok := k.block(id); ok {
		return k.attrs(p), nil
	}
	return map[string]string{}, nil
}

func batchGetBlockAttrs(k *Kernel, a args) (any, error) {
	out := map[string]any{}
	for _, id := range a.strs("ids") {
		if p, ok := k.block(id); ok {
			out[id] = k.attrs(p)
		}
	}
	return out, nil
}

var attrName = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)

// checkAttrs reads a set of attributes: null removes, names are lowered.
func checkAttrs(id string, attrs args) (map[string]string, error) {
	out := map[string]string{}
	for name, v := range attrs {
		s, isString := v.(string)
		if v != nil && !isString {
			return nil, fail("the value of attr [" + name + "] must be a string")
		}
		if name = strings.ToLower(name); !attrName.MatchString(name) {
			return nil, fail("The attribute name can only contain lowercase English letters, digits, and hyphens, and must start with a lowercase English letter [" + id + "]")
		}
		out[name] = s
	}
	return out, nil
}

// setAttrs merges attributes into a block; the id cannot be changed.
func (k *Kernel) setAttrs(p place, attrs map[string]string) error {
	for name, v := range attrs {
		if name != "id" {
			text.SetAttr(p.node, name, v)
		}
	}
	return k.save(p.doc)
}

// writeUnindexed saves documents without telling the index, as a batch does
// that stops half-way.
func (k *Kernel) writeUnindexed(docs []*document) error {
	for _, d := range docs {
		was, queued := k.stale[d.id()]
		if err := k.save(d); err != nil {
			return err
		}
		delete(k.stale, d.id())
		if queued {
			k.stale[d.id()] = was
		}
	}
	return nil
}

func setBlockAttrs(k *Kernel, a args) (any, error) {
	id, attrs := a.str("id"), a.object("attrs")
	if !text.ValidID(id) {
		return nil, fail(msgBadID)
	}
	set, err := checkAttrs(id, attrs)
	if err != nil {
		return nil, err
	}
	p, ok := k.block(id)
	if !ok {
		return nil, fail(k.notFoundText())
	}
	return nil, k.setAttrs(p, set)
}

// batchSetBlockAttrs stops at the first bad item; those before it are written,
// but not indexed.
func batchSetBlockAttrs(k *Kernel, a args) (any, error) {
	docs, err := k.batchSet(a)
	if err != nil {
		if werr := k.writeUnindexed(docs); werr != nil {
			return nil, werr
		}
		return nil, err
	}
	for _, d := range docs {
		if err := k.save(d); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

func (k *Kernel) batchSet(a args) (docs []*document, err error) {
	for _, item := range a.objects("blockAttrs") {
		id := item.str("id")
		if !text.ValidID(id) {
			return docs, fail(msgBadID)
		}
		set, err := checkAttrs(id, item.object("attrs"))
		if err != nil {
			return docs, err
		}
		p, ok := k.block(id)
		if !ok {
			return docs, fail("Content block with id [" + id + "] not found")
		}
		for name, v := range set {
			if name != "id" {
				text.SetAttr(p.node, name, v)
			}
		}
		docs = append(docs, p.doc)
	}
	return docs, nil
}

func getBookmarkLabels(k *Kernel, _ args) (any, error) {
	labels := []string{}
	for _, row := range k.rows("SELECT DISTINCT value FROM attributes WHERE name = 'bookmark' ORDER BY value") {
		labels = append(labels, row["value"])
	}
	return labels, nil
}
