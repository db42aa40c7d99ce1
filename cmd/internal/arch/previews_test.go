package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"siyuan-broker/contract"
)

// TestPreviewsNameThingsByWordsThatPagesHave: the page on which a person agrees has
// a word in each language for what contract.PreviewKinds lists, and calls all else
// a thing.
func TestPreviewsNameThingsByWordsThatPagesHave(t *testing.T) {
	t.Parallel()
	known, found := contract.PreviewKinds(), 0
	for _, room := range []string{"connector", "broker"} {
		err := filepath.WalkDir(filepath.Join("..", "..", "..", room), func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if lit, ok := n.(*ast.CompositeLit); ok {
					for _, kind := range previewKinds(lit) {
						if found++; !slices.Contains(known, kind) {
							t.Errorf("%s: a preview names a %q, which is no kind of contract.PreviewKinds", path, kind)
						}
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if found < 15 {
		t.Errorf("only %d names were found: previews are written in another way now", found)
	}
}

// previewKinds are the kinds in a PreviewItem, or in a list of them.
func previewKinds(lit *ast.CompositeLit) (kinds []string) {
	elements := []ast.Expr{lit}
	if list, ok := lit.Type.(*ast.ArrayType); ok && named(list.Elt) {
		elements = lit.Elts
	} else if !named(lit.Type) {
		return nil
	}
	for _, e := range elements {
		item, ok := e.(*ast.CompositeLit)
		if !ok || item != lit && item.Type != nil {
			continue // met by itself, or made elsewhere
		}
		for _, field := range item.Elts {
			pair, ok := field.(*ast.KeyValueExpr)
			if !ok {
				continue
			}
			key, isName := pair.Key.(*ast.Ident)
			value, isText := pair.Value.(*ast.BasicLit)
			if isName && isText && key.Name == "Kind" {
				if kind, err := strconv.Unquote(value.Value); err == nil {
					kinds = append(kinds, kind)
				}
			}
		}
	}
	return kinds
}

func named(e ast.Expr) bool {
	s, ok := e.(*ast.SelectorExpr)
	return ok && s.Sel.Name == "PreviewItem"
}
