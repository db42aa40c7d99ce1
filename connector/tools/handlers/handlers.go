// Package handlers is the list of all handlers: what a connector gives its
// executor. It knows nothing but the packages of the tools.
package handlers

import (
	"slices"

	"siyuan-broker/connector/tools"
	"siyuan-broker/connector/tools/av"
	"siyuan-broker/connector/tools/block"
	"siyuan-broker/connector/tools/document"
	"siyuan-broker/connector/tools/extension"
	"siyuan-broker/connector/tools/file"
	"siyuan-broker/connector/tools/flashcard"
	"siyuan-broker/connector/tools/fs"
	"siyuan-broker/connector/tools/notebook"
	"siyuan-broker/connector/tools/search"
	"siyuan-broker/connector/tools/system"
	"siyuan-broker/connector/tools/tag"
	"siyuan-broker/connector/tools/timeline"
)

// All returns the handler of every action.
func All() []tools.Binding {
	return slices.Concat(av.Bindings(), extension.Bindings(), file.Bindings(fs.Document), fs.Bindings(), notebook.Bindings(), document.Bindings(), block.Bindings(), search.Bindings(), system.Bindings(), tag.Bindings(), flashcard.Bindings(), timeline.Bindings())
}
