package sqlscope

import "strings"

// Refusal says why a statement is not run and what to write instead. Both texts
// are made from constants and from the statement itself, so they are the same
// whatever the workspace contains.
type Refusal struct {
	// Reason is one sentence naming what was refused.
	Reason string
	// Hint names the nearest form that is allowed; it may be empty.
	Hint string
}

// Error returns the reason followed by the hint.
func (r *Refusal) Error() string {
	if r.Hint == "" {
		return r.Reason
	}
	return r.Reason + " " + r.Hint
}

func refuse(reason, hint string) *Refusal { return &Refusal{Reason: reason, Hint: hint} }

const tableHint = "Tables: blocks, blocks_fts, spans, refs, attributes, assets, file_annotation_refs."

func noSuchTable() *Refusal {
	return refuse("The statement reads a table that is not available.", tableHint)
}

func badMatching() *Refusal {
	return refuse("MATCH is only possible as column MATCH 'words' on blocks_fts.",
		"Write: SELECT id, content FROM blocks_fts WHERE content MATCH 'x'. Columns: content, fcontent, name, alias, memo, tag.")
}

func onlyReading() *Refusal {
	return refuse("Only reading is possible here.", "To change notes use the block and document tools.")
}

// reworded translates an error of the scratch database, whose own text may name
// its secret tables. A name is repeated only if it stands in the statement.
func reworded(err error, stmt string) *Refusal {
	text := err.Error()
	if strings.Contains(text, "cannot modify") {
		return onlyReading()
	}
	for _, known := range []struct{ sign, reason, hint string }{
		{"should this be a string literal in single-quotes?", "There is no column with a name in double quotes%s.", "Put text in single quotes: type = 'd'."},
		{"no such column: ", "There is no column%s.", "Columns of blocks: " + strings.Join(kernelTables()[0].columns, ", ") + "."},
		{"ambiguous column name: ", "More than one table has the column%s.", "Put the alias of the table in front of it."},
		{"no such table: ", "There is no table%s.", tableHint},
		{"no such function: ", "There is no function%s.", "Use SQLite's text, date, JSON, aggregate and window functions."},
		{"wrong number of arguments to function ", "The number of arguments is wrong for the function%s.", "Look the function up in the SQLite documentation."},
		{"near \"", "The statement has a syntax error near%s.", "Check the spelling there and just before it."},
		{"incomplete input", "The statement ends too early%s.", "Complete it."},
		{"circular reference", "A WITH clause refers to itself%s.", "Only WITH RECURSIVE … UNION ALL may do that."},
	} {
		if _, rest, ok := strings.Cut(text, known.sign); ok {
			return refuse(strings.Replace(known.reason, "%s", quotedName(rest, stmt), 1), known.hint)
		}
	}
	return refuse("SQLite does not accept the statement.", "Check that every SELECT of a UNION has the same columns and that aggregates and windows stand where they may.")
}

// quotedName returns the name at the start of an SQLite message when it is one
// of the statement's own, else "".
func quotedName(rest, stmt string) string {
	name := strings.FieldsFunc(rest+" ", func(r rune) bool { return strings.ContainsRune("\"\n ()", r) })
	if len(name) == 0 || !strings.Contains(strings.ToLower(stmt), strings.ToLower(name[0])) {
		return ""
	}
	return " " + printable(name[0])
}

// printable bounds a name of the agent that is repeated to it.
func printable(name string) string {
	const longest = 40
	clean := []rune(strings.Map(func(r rune) rune {
		if wordRune(r) || strings.ContainsRune(".*+-/<>=!|&,%~", r) {
			return r
		}
		return -1
	}, name))
	if len(clean) > longest {
		clean = clean[:longest]
	}
	return string(clean)
}
