// Package fs has the handlers of the fs tool: notes by the names people see.
// What a path leads to is found in one place, resolve; the virtual files are
// answered by the broker and do not exist here.
package fs

import (
	"siyuan-broker/connector/tools"
	catalogue "siyuan-broker/contract/tools"
)

// Bindings are the handlers of this tool.
func Bindings() []tools.Binding {
	return []tools.Binding{
		tools.Bind(catalogue.FSLs, ls),
		tools.Bind(catalogue.FSTree, tree),
		tools.Bind(catalogue.FSRead, read),
		tools.Bind(catalogue.FSWrite, write),
		tools.Bind(catalogue.FSReplace, replace),
		tools.Bind(catalogue.FSReorder, reorder),
		tools.BindDangerous(catalogue.FSRm, previewRm, rm),
		tools.BindDangerous(catalogue.FSMv, previewMv, mv),
		tools.Bind(catalogue.FSSearch, search),
	}
}
