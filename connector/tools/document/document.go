// Package document has the handlers of the document tool.
package document

import (
	"siyuan-broker/connector/tools"
	catalogue "siyuan-broker/contract/tools"
)

// Bindings are the handlers of this tool.
func Bindings() []tools.Binding {
	return []tools.Binding{
		tools.Bind(catalogue.DocumentCreate, create),
		tools.Bind(catalogue.DocumentGetDoc, getDoc),
		tools.Bind(catalogue.DocumentListTree, listTree),
		tools.Bind(catalogue.DocumentLookup, lookup),
		tools.Bind(catalogue.DocumentGetChildDocs, getChildDocs),
		tools.Bind(catalogue.DocumentGetChildBlocks, getChildBlocks),
		tools.Bind(catalogue.DocumentGetOutline, getOutline),
		tools.Bind(catalogue.DocumentSearchDocs, searchDocs),
		tools.Bind(catalogue.DocumentRename, rename),
		tools.BindDangerous(catalogue.DocumentMove, previewMove, move),
		tools.BindDangerous(catalogue.DocumentRemove, previewRemove, remove),
		tools.Bind(catalogue.DocumentReorder, reorder),
		tools.Bind(catalogue.DocumentSetAttr, setAttr),
		tools.Bind(catalogue.DocumentCreateDailyNote, createDailyNote),
		tools.Bind(catalogue.DocumentDuplicate, duplicate),
		tools.Bind(catalogue.DocumentHeadingToDoc, headingToDoc),
		tools.BindDangerous(catalogue.DocumentToHeading, previewDocToHeading, docToHeading),
		tools.Bind(catalogue.DocumentEnsureLinks, ensureLinkTargets),
	}
}
