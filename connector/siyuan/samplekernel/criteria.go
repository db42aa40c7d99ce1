package samplekernel

import (
	"maps"
	"slices"
	"strings"
)

// criteriaFile is where saved searches are kept.
const criteriaFile = "criteria.json"

func criteriaRoutes() map[string]route {
	return map[string]route{
		"/api/storage/getCriteria":     {serve: getCriteria, noBody: true},
		"/api/storage/setCriterion":    {serve: setCriterion},
		"/api/storage/removeCriterion": {serve: removeCriterion},
	}
}

func (k *Kernel) criteria() []map[string]any {
	list := []map[string]any{}
	_ = readJSONFile(k.workspace("data", "storage", criteriaFile), &list) // no file: none saved yet
	return list
}

func (k *Kernel) saveCriteria(list []map[string]any) error {
	return writeJSONFile(k.workspace("data", "storage", criteriaFile), list)
}

func getCriteria(k *Kernel, _ args) (any, error) { return k.criteria(), nil }

// setCriterion keeps a search with all its switches; those not given are off.
func setCriterion(k *Kernel, a args) (any, error) {
	c := a.object("criterion")
	name := c.str("name")
	types := map[string]any{}
	for t := range searchTypes() {
		types[t] = false
	}
	kinds := map[string]any{}
	for _, kind := range strings.Fields("text imgText imgTitle imgSrc aText aTitle aHref code em strong inlineMath inlineMemo blockRef fileAnnotationRef kbd mark s sub sup tag u docTitle codeBlock mathBlock htmlBlock") {
		kinds[kind] = false
	}
	if given, ok := c["types"].(map[string]any); ok {
		maps.Copy(types, given)
	}
	if given, ok := c["replaceTypes"].(map[string]any); ok {
		maps.Copy(kinds, given)
	}
	saved := maps.Clone(map[string]any(c))
	saved["types"], saved["replaceTypes"] = types, kinds
	list := slices.DeleteFunc(k.criteria(), func(o map[string]any) bool { return o["name"] == name })
	return nil, k.saveCriteria(append(list, saved))
}

func removeCriterion(k *Kernel, a args) (any, error) {
	name := a.str("name")
	return nil, k.saveCriteria(slices.DeleteFunc(k.criteria(), func(o map[string]any) bool { return o["name"] == name }))
}
