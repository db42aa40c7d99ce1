package mcpserver

import (
	"encoding/json"
	"net/http"
	"strings"
)

// MetadataPath is where RFC 9728 metadata is served, as it stands and with the
// resource's path behind it.
const MetadataPath = "/.well-known/oauth-protected-resource"

// publicURL is the public address a request came in by, or the preferred one.
func (s *Server) publicURL(r *http.Request) string {
	for i, a := range s.addresses {
		if strings.EqualFold(r.Host, a.host) || strings.EqualFold(withoutDefaultPort(r.Host, "https"), a.host) {
			return strings.TrimRight(s.cfg.PublicURLs[i], "/")
		}
	}
	return strings.TrimRight(s.cfg.PublicURLs[0], "/")
}

// metadataURL names the metadata of the resource a request was sent to, with
// its trailing slash if it had one: clients compare byte for byte.
func (s *Server) metadataURL(r *http.Request) string {
	return s.publicURL(r) + MetadataPath + "/mcp" + trailingSlash(r)
}

func trailingSlash(r *http.Request) string {
	if strings.HasSuffix(r.URL.Path, "/mcp/") {
		return "/"
	}
	return ""
}

// ServeMetadata answers the protected resource metadata. It is public.
func (s *Server) ServeMetadata(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", "*")
	switch r.Method {
	case http.MethodGet, http.MethodHead:
	case http.MethodOptions:
		h.Set("Access-Control-Allow-Methods", "GET, OPTIONS")
		h.Set("Access-Control-Allow-Headers", "Content-Type, Mcp-Protocol-Version")
		w.WriteHeader(http.StatusNoContent)
		return
	default:
		h.Set("Allow", "GET, HEAD, OPTIONS")
		http.Error(w, "Only GET is answered here.", http.StatusMethodNotAllowed)
		return
	}
	body, err := json.Marshal(struct {
		Resource      string   `json:"resource"`
		Servers       []string `json:"authorization_servers"`
		Scopes        []string `json:"scopes_supported,omitempty"`
		BearerMethods []string `json:"bearer_methods_supported"`
		Name          string   `json:"resource_name"`
	}{Resource(s.publicURL(r)) + trailingSlash(r), []string{s.cfg.Issuer}, s.cfg.Scopes, []string{"header"}, "SiYuan notes"})
	if err != nil { // strings always marshal
		http.Error(w, "The metadata could not be written.", http.StatusInternalServerError)
		return
	}
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "public, max-age=300")
	_, _ = w.Write(body) // a client that went away is no concern of ours
}
