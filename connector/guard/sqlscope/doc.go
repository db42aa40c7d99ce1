// Package sqlscope judges a raw SQL statement of an agent and rewrites it so
// that it can only see what the agent may read.
//
// It knows the tables of the kernel's index and the syntax of SQLite. It must
// not know the kernel client, grants or levels: it is handed the ids of the
// readable notebooks and returns text. Running that text, and translating what
// the kernel answers, is the guard's job.
//
// # Judging
//
// SQLite is the judge, not a regular expression. The statement is prepared,
// never run, in a scratch database in this process whose tables have random
// names; an authorizer admits SELECT, listed functions and reads of those
// tables. What is decided per table is never decided by the accessor SQLite
// reports: a common table expression can take any accessor's name. A small
// lexer in front refuses what preparing cannot see (bind parameters, temp.x, a
// CTE named like a kernel table) and removes comments, so that no parser
// between us and SQLite can see another statement than the one that was judged.
//
// # Scoping
//
// The statement becomes a subquery below CTEs that shadow the kernel's tables:
//
//	WITH blocks AS (SELECT … FROM main.blocks WHERE box IN (…)), …
//	SELECT * FROM (<statement>
//	) LIMIT n+1
//
// Filtering by box is not enough, since readable rows carry text of other
// notebooks. While anything is hidden:
//
//   - A block whose markdown holds a dynamic anchor ((id 'text')) whose target
//     is not readable, or whose target again shows such an anchor, has content,
//     fcontent and markdown replaced by Placeholder and length 0. Hidden, closed
//     and missing targets are treated alike. Replacing only the anchor would
//     leave its length and its equality with guessed words to be probed. Static
//     anchors ((id "text")) are the author's own words and stay.
//   - The content of query embeds and databases, and of containers around them,
//     is replaced: it holds rendered rows of any notebook. Their markdown stays.
//   - blocks_fts leaves such rows out, because MATCH asks the index of the
//     original text.
//   - spans and refs of such anchors are replaced in the same way. A ref says
//     nothing about an unreadable target but the id its author wrote, which is
//     what the kernel stores for a missing one. Refs written by databases are
//     absent.
//   - hash is empty (the hash of a document covers its anchors); ial and
//     attributes lose what databases write at the blocks bound to them.
//   - id is empty except in blocks. The kernel makes the other ids anew, with the
//     time in them, whenever it indexes a document, which it does when a hidden
//     note that the document cites is renamed or its notebook closed.
//
// Because all of it happens in SQL, the rows need no further scrubbing.
//
// # Errors and order as channels
//
// SQLite may evaluate a term on an index before it looks at box, so an
// expression that fails on a hidden row would tell about it; the automatic index
// of a join orders equal rows by text that is then replaced; and where rows lie in
// the index tells when their document was last indexed. So only a SELECT of rows
// from blocks, using nothing that can fail at run time, is merged with the
// kernel's table and keeps its indexes, with id as the last term of its order.
// For all others the CTEs are MATERIALIZED in the order of their columns: the
// statement works on a copy of what is permitted. Without ORDER BY, then, rows
// come in an order that only permitted data decides, but in none to rely on.
//
// Full text cannot be copied; there, all that decides about a row is decided
// before the terms of the statement. A SELECT of rows from it is ordered like one
// from blocks. A statement that joins or aggregates its hits without ordering
// them by id still shows in what order their documents were last indexed.
//
// Time is not made equal.
//
// # What the kernel does to the text
//
// The kernel parses statements it understands and prints them again, turning
// LIMIT 5, 3 into LIMIT 5 OFFSET 3 and unknown columns into text. Comma limits
// are rewritten here, unknown columns refused, and the prefix contains two
// constructs that the kernel's parsers do not accept, so that SQLite gets our
// text verbatim.
//
// Endless recursion is not refused: LIMIT stops it, unless the statement
// aggregates or sorts it. That keeps the kernel busy as it would from any other
// client; the caller's deadline ends the waiting, not the work.
package sqlscope
