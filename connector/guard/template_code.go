package guard

import (
	"context"
	"errors"
	"slices"
	"strings"
	"text/template/parse"

	"siyuan-broker/connector/guard/sqlscope"
	"siyuan-broker/contract"
)

var errReference = errors.New("guard: reference of another session")

// delims are the marks around the code of a template.
type delims struct{ left, right string }

var (
	fileDelims  = delims{".action{", "}"} // of template files
	sprigDelims = delims{"{{", "}}"}      // of texts such as save paths
)

// harmless are the functions that tell the time and work with text. None reads a
// note, a file or the machine, and none makes a text longer than what it is given
// by more than a few characters.
var harmless = slices.Concat(slices.DeleteFunc(slices.Clone(dateFunctions), func(f string) bool { return f == "printf" }), []string{
	"and", "or", "not", "eq", "ne", "lt", "le", "gt", "ge", "len", "index", "slice", "print", "println", "html", "js", "urlquery",
	"title", "trim", "trimAll", "trimPrefix", "trimSuffix", "replace", "contains", "hasPrefix", "hasSuffix", "substr", "trunc", "abbrev",
	"quote", "squote", "cat", "join", "split", "splitList", "first", "last", "list", "default", "empty", "coalesce", "ternary",
	"mul", "div", "mod", "max", "min", "round", "ceil", "floor", "int", "int64", "float64", "toString", "toDate", "dateModify", "date_modify", "duration", "unixEpoch", "ago",
})

// queries are the functions that ask about notes with a statement.
var queries = []string{"queryBlocks", "querySpans", "querySQL"}

// maxRanges is how deep loops may stand in each other.
const maxRanges = 2

// checkCode refuses template code of an agent that could do more than its writer
// may. SiYuan runs what stands in querySQL as it is, statements that write too.
func (s *Session) checkCode(ctx context.Context, field, text string, d delims) error {
	if !strings.Contains(text, d.left) {
		return nil
	}
	t := parse.New("template")
	t.Mode = parse.SkipFuncCheck
	trees := map[string]*parse.Tree{}
	if _, err := t.Parse(text, d.left, d.right, trees); err != nil {
		return contract.InvalidFields(contract.Field{Path: field, Message: "is no template: its code between " + d.left + " and " + d.right + " cannot be read"})
	}
	c := &codeCheck{s: s, field: field}
	for _, tree := range trees {
		if tree.Root != nil {
			c.node(ctx, tree.Root, 0)
		}
	}
	return c.err
}

// codeCheck walks template code to its first fault.
type codeCheck struct {
	s     *Session
	field string
	err   error
}

func (c *codeCheck) refuse(message string, hint string) {
	if c.err == nil {
		c.err = contract.Fail(contract.HiddenReference, "The template in %s %s.", c.field, message).WithHint("%s", hint)
	}
}

func (c *codeCheck) node(ctx context.Context, n parse.Node, ranges int) {
	if c.err != nil {
		return
	}
	switch n := n.(type) {
	case *parse.ListNode:
		if n == nil {
			return
		}
		for _, inner := range n.Nodes {
			c.node(ctx, inner, ranges)
		}
	case *parse.ActionNode:
		c.node(ctx, n.Pipe, ranges)
	case *parse.PipeNode:
		if n == nil {
			return
		}
		for i, cmd := range n.Cmds {
			c.command(ctx, cmd, i > 0, ranges)
		}
	case *parse.IfNode:
		c.branch(ctx, &n.BranchNode, ranges)
	case *parse.WithNode:
		c.branch(ctx, &n.BranchNode, ranges)
	case *parse.RangeNode:
		if ranges++; ranges > maxRanges {
			c.refuse("has loops more than two deep", "Write it with fewer loops.")
		}
		c.branch(ctx, &n.BranchNode, ranges)
	case *parse.ChainNode:
		c.node(ctx, n.Node, ranges)
	case *parse.IdentifierNode:
		c.function(n.Ident)
	case *parse.TemplateNode:
		c.refuse("calls another template", "Write the text where it is needed.")
	}
}

func (c *codeCheck) branch(ctx context.Context, b *parse.BranchNode, ranges int) {
	c.node(ctx, b.Pipe, ranges)
	c.node(ctx, b.List, ranges)
	c.node(ctx, b.ElseList, ranges)
}

// command checks one call in a pipeline; piped says that it gets another argument
// from the call before it.
func (c *codeCheck) command(ctx context.Context, cmd *parse.CommandNode, piped bool, ranges int) {
	args := cmd.Args
	if f, ok := args[0].(*parse.IdentifierNode); ok && slices.Contains(queries, f.Ident) {
		c.query(ctx, args, piped)
		args = args[1:]
	}
	for _, a := range args {
		c.node(ctx, a, ranges)
	}
}

func (c *codeCheck) function(name string) {
	if !slices.Contains(harmless, name) {
		c.refuse("uses the function "+name+", which could do more than its writer may", "Use functions of time and text only, such as now, date, upper and trim; ask about notes with search.query_sql.")
	}
}

// query checks a question about notes: those from whom nothing is hidden may ask
// with one plain SELECT.
func (c *codeCheck) query(ctx context.Context, args []parse.Node, piped bool) {
	if !c.s.whole() {
		c.refuse("asks about all notes, also of notebooks you may not read", "Use functions of time and text only; ask about notes with search.query_sql.")
		return
	}
	var stmt *parse.StringNode
	if len(args) == 2 && !piped {
		stmt, _ = args[1].(*parse.StringNode)
	}
	if stmt == nil || strings.Contains(stmt.Text, "?") {
		c.refuse("asks about notes with a statement that is not one text without ?", "Write the SELECT as one text, without arguments.")
		return
	}
	judge, err := c.s.g.judge.get()
	if err == nil {
		_, err = judge.Scope(ctx, stmt.Text, sqlscope.Scope{All: true}, 1)
	}
	if refusal, ok := errors.AsType[*sqlscope.Refusal](err); ok {
		c.refuse("asks about notes with a statement that may not run: "+refusal.Reason, "Write one SELECT, as search.query_sql takes it.")
	} else if err != nil && c.err == nil {
		c.err = err
	}
}
