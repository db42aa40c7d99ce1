package guard

import (
	"context"
	"path"
	"strings"

	"siyuan-broker/contract"
)

// RenderTemplate renders a template file, named as below the workspace's
// templates folder, for a document, as block DOM. Templates may query every
// notebook, so nothing may be hidden from the caller.
func (s *Session) RenderTemplate(ctx context.Context, name string, d Doc) (string, error) {
	if err := s.use(d.nb, contract.Read); err != nil {
		return "", err
	}
	if !s.whole() {
		return "", contract.Fail(contract.Unsupported, "Templates can query every notebook, so they are rendered only for those who may read all of them.").
			WithHint("Write the text yourself, or ask a tenant owner for the level r on every notebook.")
	}
	if name == "" || strings.HasPrefix(name, "/") || path.Clean(name) != name || strings.Contains(name, `\`) || strings.HasPrefix(name, "..") {
		return "", contract.Fail(contract.NotFound, "There is no template of that name.")
	}
	w, err := s.g.r.WorkspaceInfo(ctx)
	if err != nil {
		return "", err
	}
	dom, err := s.g.r.RenderTemplate(ctx, path.Join(w.Dir, "data", "templates", name), d.id)
	if err != nil {
		return "", err
	}
	return s.maskDOM(ctx, dom)
}
