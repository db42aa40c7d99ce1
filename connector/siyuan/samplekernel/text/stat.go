package text

import (
	"github.com/88250/lute/ast"
	"github.com/88250/lute/util"
)

// Stat counts the text of a block. Blanks are no runes; a CJK character is a word.
type Stat struct {
	Runes  int `json:"runeCount"`
	Words  int `json:"wordCount"`
	Links  int `json:"linkCount"`
	Images int `json:"imageCount"`
	Refs   int `json:"refCount"`
	Blocks int `json:"blockCount"`
}

// StatOf counts a block and everything in it; a document is not a block of its own.
func StatOf(n *ast.Node) Stat {
	var s Stat
	s.Runes, s.Words, s.Links, s.Images, s.Refs = n.Stat()
	s.Blocks = len(Blocks(n))
	if n.Type == ast.NodeDocument {
		s.Blocks--
	}
	return s
}

// StatOfText counts plain text.
func StatOfText(content string) (s Stat) {
	s.Runes, s.Words = util.WordCount(content)
	return s
}

// Add is the sum of two counts.
func (s Stat) Add(o Stat) Stat {
	return Stat{s.Runes + o.Runes, s.Words + o.Words, s.Links + o.Links, s.Images + o.Images, s.Refs + o.Refs, s.Blocks + o.Blocks}
}
