// Package guard is notebook-scoped access to the kernel, and the only way for
// tools to reach it. It makes an unchecked access unwritable: a handler holds a
// [Session] made from one grant, the session hands out typed references
// ([Notebook], [Doc], [Block]) after proving a level for each, and kernel
// methods take those and never strings. Collections come back filtered; what
// the caller may not see does not exist for him, in results, counts and errors
// alike. Everything that writes goes through [Session.Write], which takes the
// locks, logs the intent and reads back.
//
// The notebook of a block comes from the block tree, never from the SQL index,
// which lags.
//
// # What a reference to something unreadable looks like
//
// A readable note may cite a block that its reader may not see. The id stays:
// it is part of the readable note, and asking for it gives the same not_found
// whether the block is hidden, in a closed notebook or gone. A static anchor
// ((id "text")) stays, because its author wrote it. A dynamic anchor
// ((id 'text')), which the kernel fills with the target's title, is shown as
// [Placeholder] for every unreadable target. So is the anchor of a readable target
// whose own text quotes such a title, for anchors quote anchors; that one is put
// back from the stored block when the text is written. What databases write into
// the attributes of their rows is not shown while anything is hidden from the
// caller, and index text around embeds and databases is never used.
//
// An updated text may not keep a reference to anything unreadable. SiYuan drops
// the id of a reference when it stores one to a block it does not know, whether it
// comes as Markdown or as DOM, and there is no other way to write it; so what
// became of the reference would tell hidden from missing.
//
// # Databases are the exception
//
// Hidden notebooks interfere with nothing, but for this: a database needs the
// level in every notebook that shows it or has a block as a row in it, because its
// rows, columns and views are one thing. As long as a hidden notebook is among
// them, the database is for the caller what an id is that names none, to the last
// byte and kernel call; nothing says why. Once no hidden notebook has a part in
// it, it is there. Package proof holds this as the one accepted difference.
//
// The package knows nothing of MCP, tunnels, tenants or policy files: the
// grant it is given has all restrictions in it already.
package guard
