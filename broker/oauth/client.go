package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"siyuan-broker/tenants"
)

// client is a program that asks for tokens, as far as anybody knows it.
type client struct {
	id        string
	name      string // what it calls itself, as it came
	redirects []string
	described string // host that serves its metadata document; empty for a registered one
}

// maxClientID bounds a client's id, which may be a URL.
const maxClientID = 2048

// byDocument reports whether a client's id is the address of its metadata.
// Registered ids never look like that.
func byDocument(id string) bool { return strings.HasPrefix(id, "https://") }

// client finds a client by its id. A *refusal says why there is none; other
// errors are the store's.
func (s *Server) client(ctx context.Context, id string) (client, error) {
	if id == "" || len(id) > maxClientID {
		return client{}, unknownClient()
	}
	if byDocument(id) {
		doc, err := s.documents.Document(ctx, id)
		if err != nil {
			s.log.InfoContext(ctx, "client metadata document refused", "client", id, "reason", err)
			return client{}, refuse("invalid_client", "The client's metadata document cannot be used: %v.", err)
		}
		u, err := url.Parse(id) // the fetcher has checked it
		if err != nil {
			return client{}, unknownClient()
		}
		return client{id, doc.Name, doc.RedirectURIs, strings.ToLower(u.Host)}, nil
	}
	c, err := s.cfg.Store.OAuthClient(ctx, id)
	if errors.Is(err, tenants.ErrNotFound) {
		return client{}, unknownClient()
	}
	if err != nil {
		return client{}, err
	}
	return client{id: c.ID, name: c.Name, redirects: c.RedirectURIs}, nil
}

// known checks that a registered client still is. One that is named by its
// document holds nothing here that could expire.
func (s *Server) known(ctx context.Context, id string) error {
	if byDocument(id) && len(id) <= maxClientID {
		return nil
	}
	_, err := s.client(ctx, id)
	return err
}

// used moves the end of a registration that is in use.
func (s *Server) used(ctx context.Context, id string) {
	if byDocument(id) {
		return
	}
	if err := s.cfg.Store.KeepOAuthClient(ctx, id, s.now().Add(clientLife)); err != nil {
		s.log.WarnContext(ctx, "the end of an OAuth client was not moved", "client", id, "error", err)
	}
}

// redirect finds where the answer goes. The client names it, unless it has only
// one.
func (c client) redirect(asked string) (target, error) {
	if asked == "" {
		if len(c.redirects) != 1 {
			return target{}, errors.New("redirect_uri is missing")
		}
		asked = c.redirects[0]
	}
	t, err := parseRedirect(asked)
	if err != nil {
		return target{}, fmt.Errorf("redirect_uri %w", err)
	}
	for _, registered := range c.redirects {
		if sameRedirect(registered, asked) {
			return t, nil
		}
	}
	return target{}, errors.New("redirect_uri is not one of the client's")
}
