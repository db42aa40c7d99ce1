package oauth

import (
	"encoding/json"
	"net/http"
)

// Paths of the endpoints under the issuer.
const (
	AuthorizePath = "/oauth/authorize"
	TokenPath     = "/oauth/token"
	RegisterPath  = "/oauth/register"
	RevokePath    = "/oauth/revoke"
	DevicePath    = "/oauth/device" // for devices
	VerifyPath    = "/device"       // for the person, who types it
	JWKSPath      = "/oauth/jwks"
)

// MetadataPaths are where the metadata is served: as RFC 8414 and OpenID Connect
// have it for the issuer, and the forms that clients make of the address of
// /mcp. The document is the same everywhere.
func MetadataPaths() []string {
	return []string{
		"/.well-known/oauth-authorization-server", "/.well-known/oauth-authorization-server/mcp",
		"/.well-known/openid-configuration", "/.well-known/openid-configuration/mcp",
		"/mcp/.well-known/oauth-authorization-server", "/mcp/.well-known/openid-configuration",
	}
}

// metadataDocument is the RFC 8414 document. The members that only OpenID
// Connect knows are there because clients that look under its path demand them.
func metadataDocument(issuer string) ([]byte, error) {
	return json.Marshal(struct {
		Issuer             string   `json:"issuer"`
		Authorization      string   `json:"authorization_endpoint"`
		Token              string   `json:"token_endpoint"`
		Registration       string   `json:"registration_endpoint"`
		Revocation         string   `json:"revocation_endpoint"`
		Device             string   `json:"device_authorization_endpoint"`
		JWKS               string   `json:"jwks_uri"`
		Scopes             []string `json:"scopes_supported"`
		ResponseTypes      []string `json:"response_types_supported"`
		ResponseModes      []string `json:"response_modes_supported"`
		GrantTypes         []string `json:"grant_types_supported"`
		TokenAuthMethods   []string `json:"token_endpoint_auth_methods_supported"`
		RevokeAuthMethods  []string `json:"revocation_endpoint_auth_methods_supported"`
		ChallengeMethods   []string `json:"code_challenge_methods_supported"`
		MetadataDocuments  bool     `json:"client_id_metadata_document_supported"`
		IssParameter       bool     `json:"authorization_response_iss_parameter_supported"`
		UILocales          []string `json:"ui_locales_supported"`
		SubjectTypes       []string `json:"subject_types_supported"`
		IDTokenSigningAlgs []string `json:"id_token_signing_alg_values_supported"`
	}{
		Issuer: issuer, Authorization: issuer + AuthorizePath, Token: issuer + TokenPath, Registration: issuer + RegisterPath,
		Revocation: issuer + RevokePath, Device: issuer + DevicePath, JWKS: issuer + JWKSPath,
		Scopes: append(Scopes(), OfflineAccess), ResponseTypes: []string{"code"}, ResponseModes: []string{"query"},
		GrantTypes:       []string{grantCode, grantRefresh, grantDevice},
		TokenAuthMethods: []string{authNone}, RevokeAuthMethods: []string{authNone}, ChallengeMethods: []string{"S256"},
		MetadataDocuments: true, IssParameter: true, UILocales: []string{"en", "zh-CN"},
		SubjectTypes: []string{"public"}, IDTokenSigningAlgs: []string{"EdDSA"},
	})
}

// ServeMetadata answers the metadata of the authorization server.
func (s *Server) ServeMetadata(w http.ResponseWriter, r *http.Request) {
	if !s.open(w, r, http.MethodGet) {
		return
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "public, max-age=300")
	_, _ = w.Write(s.metadata) // a client that went away is no concern of ours
}
