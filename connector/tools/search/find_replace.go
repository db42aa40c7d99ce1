package search

import (
	"context"
	"regexp"
	"strings"

	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/tools"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

// replaceable are the kinds of text by SiYuan's names for them, and the block
// types that hold them.
var replaceable = map[string][]string{
	"text": {"p", "h", "t"}, "codeBlock": {"c"}, "mathBlock": {"m"}, "htmlBlock": {"html"}, "docTitle": nil,
}

func findReplace(ctx context.Context, r *tools.Request, in catalogue.SearchFindReplaceIn) (out catalogue.SearchFindReplaceOut, err error) {
	edit, err := replacement(in)
	if err != nil {
		return out, err
	}
	scope, err := scopeOf(in)
	if err != nil {
		return out, err
	}
	var targets []guard.Target
	for _, id := range in.IDs {
		b, err := r.Session.Block(ctx, id, contract.ReadWrite)
		if err != nil {
			return out, err
		}
		if !inPaths(in.Paths, b) {
			continue
		}
		scope.Blocks = append(scope.Blocks, b)
		targets = append(targets, b)
		if scope.Titles {
			targets = append(targets, b.Doc().Notebook())
		}
	}
	out = catalogue.SearchFindReplaceOut{Success: true, IDs: []string{}, K: in.K, R: in.R, Paths: in.Paths}
	err = r.Session.Write(ctx, r.Intent(targets...), func(ctx context.Context, tx *guard.Tx) error {
		if out.IDs, err = tx.ReplaceMany(ctx, scope, edit); err != nil {
			return err
		}
		out.Replaced = len(out.IDs) > 0
		return nil
	})
	return out, err
}

// previewFindReplace tells how many places would change, and in which documents.
func previewFindReplace(ctx context.Context, r *tools.Request, in catalogue.SearchFindReplaceIn) (p contract.Preview, err error) {
	edit, err := replacement(in)
	if err != nil {
		return p, err
	}
	scope, err := scopeOf(in)
	if err != nil {
		return p, err
	}
	for _, id := range in.IDs {
		b, err := r.Session.Block(ctx, id, contract.ReadWrite)
		if err != nil {
			return p, err
		}
		if inPaths(in.Paths, b) {
			scope.Blocks = append(scope.Blocks, b)
		}
	}
	p, err = r.Session.PreviewReplace(ctx, scope, edit)
	p.Find, p.Replace = in.K, in.R
	return p, err
}

func replacement(in catalogue.SearchFindReplaceIn) (guard.Edit, error) {
	method := guard.Method(tools.Or(in.Method, 0))
	if in.MethodName != "" {
		method = methodNames[in.MethodName]
	}
	switch method {
	case guard.Keyword:
		return guard.Edit{Old: in.K, New: in.R}, nil
	case guard.Regexp:
		re, err := regexp.Compile(in.K)
		if err != nil {
			return guard.Edit{}, contract.InvalidFields(contract.Field{Path: "k", Message: "is not a valid regular expression"})
		}
		return guard.Edit{Old: in.K, New: in.R, Pattern: re}, nil
	}
	return guard.Edit{}, contract.InvalidFields(contract.Field{Path: "methodName", Message: "text is replaced by keyword or regex"})
}

func scopeOf(in catalogue.SearchFindReplaceIn) (s guard.Scope, err error) {
	kinds := in.ReplaceTypes
	if kinds == nil {
		kinds = map[string]bool{"text": true}
	}
	held := map[string]bool{}
	for kind, on := range kinds {
		codes, ok := replaceable[kind]
		if !ok {
			return s, contract.InvalidFields(contract.Field{Path: "replaceTypes", Message: "knows text, docTitle, codeBlock, mathBlock and htmlBlock"})
		}
		for _, c := range codes {
			held[c] = held[c] || on
		}
	}
	s.Titles = kinds["docTitle"]
	chosen, err := types(in.Types, nil)
	if err != nil {
		return s, err
	}
	if chosen != nil {
		for code := range held {
			held[code] = held[code] && chosen[code]
		}
	}
	s.Types = held
	return s, nil
}

// inPaths reports whether a block is in one of the places; none given is all.
func inPaths(paths []string, b guard.Block) bool {
	at := b.Doc().Notebook().ID() + strings.TrimSuffix(b.Doc().Path(), ".sy")
	for _, p := range paths {
		p = strings.TrimSuffix(strings.Trim(p, "/"), ".sy")
		if at == p || strings.HasPrefix(at, p+"/") {
			return true
		}
	}
	return len(paths) == 0
}
