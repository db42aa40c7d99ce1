package sqlscope

import "strings"

// totalFunctions never fail at run time, whatever their arguments, or run only
// on rows that already passed the notebook filter (aggregates and windows). A
// statement that uses no others needs no fence.
const totalFunctions = `
	coalesce ifnull nullif iif if typeof likely unlikely likelihood
	length octet_length lower upper trim ltrim rtrim substr substring instr unicode round sign sqlite_version
	date time datetime julianday unixepoch strftime timediff current_date current_time current_timestamp
	count sum total avg min max group_concat string_agg
	row_number rank dense_rank percent_rank cume_dist ntile lag lead first_value last_value nth_value
	like glob match
`

// rowFunctions look at many rows, and some of them at their order.
const rowFunctions = `count sum total avg min max group_concat string_agg json_group_array json_group_object`

// partialFunctions may fail on some values: malformed JSON, an overflow, a bad
// pattern, a text above SQLite's size limit. random is here because ORDER BY
// random() LIMIT 1 is how people pick a note; it tells nothing about data.
// Allocators by number (zeroblob, randomblob), functions that tell about the
// connection (changes, total_changes, last_insert_rowid) or the build
// (sqlite_compileoption_get), that reach outside (load_extension, edit,
// readfile, fts3_tokenizer) or write logs (sqlite_log) are on neither list.
const partialFunctions = `
	abs random replace printf format char hex unhex quote concat concat_ws regexp unistr unistr_quote
	json json_array json_array_length json_array_insert json_error_position json_extract json_insert json_object
	json_patch json_pretty json_quote json_remove json_replace json_set json_type json_valid
	json_group_array json_group_object -> ->>
	acos acosh asin asinh atan atan2 atanh ceil ceiling cos cosh degrees exp floor ln log log10 log2
	mod pi pow power radians sin sinh sqrt tan tanh trunc
`

// corpusFunctions of FTS5 compute from the statistics or the original text of
// the whole index.
const corpusFunctions = `bm25 highlight snippet`

// tableFunctions are readable like tables.
const tableFunctions = `json_each json_tree`

func set(words ...string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(strings.Join(words, " ")) {
		m[w] = true
	}
	return m
}
