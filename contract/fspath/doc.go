// Package fspath is the path language of the fs tool: /Notebook/Title/Title,
// with names as people see them. It parses and prints paths and names the two
// virtual files. It knows nothing of notebooks, documents or permissions: what
// a path leads to is found by whoever holds the notes.
package fspath
