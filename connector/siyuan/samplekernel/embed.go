package samplekernel

import (
	"strings"

	"github.com/88250/lute/ast"
)

// embedQuery is the statement of a query embed block.
func embedQuery(n *ast.Node) string {
	if s := n.ChildByType(ast.NodeBlockQueryEmbedScript); s != nil {
		return strings.TrimSpace(string(s.Tokens))
	}
	return ""
}

// embedHits runs the statement of an embed over all open notebooks. Embeds show
// no embeds: a rendered one often matches its own statement.
func (k *Kernel) embedHits(stmt string) (hits []place) {
	if k.index.ReadOnly(stmt) != nil {
		return nil
	}
	rows, err := k.index.Query(stmt, "readonly")
	if err != nil {
		return nil
	}
	for _, r := range rows {
		id, _ := r["id"].(string)
		if p, ok := k.block(id); ok && p.node.Type != ast.NodeBlockQueryEmbed {
			hits = append(hits, p)
		}
	}
	return hits
}
