package rehearsal

// client is how a program signs in, as far as a server notices. What they send
// is the public record of it.
type client struct {
	name     string
	document string // address of its metadata document, which is its id; empty: it registers
	register string // body of its registration
	redirect string
	scope    string // that it asks for; empty: none
	era      string // protocol version it was seen to begin with
}

// clients are the usual ones. Who has a document uses it wherever a server says
// that it reads documents, as ours does.
func clients() []client {
	return []client{
		{
			name: "Claude", document: "https://claude.ai/oauth/mcp-oauth-client-metadata",
			redirect: "https://claude.ai/api/mcp/auth_callback", scope: "notes:read notes:write notes:delete", era: "2025-11-25",
		},
		{
			name: "ChatGPT", document: "https://chatgpt.com/oauth/client.json",
			redirect: "https://chatgpt.com/connector_platform_oauth_redirect", scope: "notes:read offline_access", era: "2025-11-25",
		},
		{
			name: "ChatGPT registers", // as it does for servers it knew before
			register: `{"client_name":"ChatGPT","redirect_uris":["https://chatgpt.com/connector/oauth/doctor"],"grant_types":["authorization_code","refresh_token"],` +
				`"response_types":["code"],"token_endpoint_auth_method":"none"}`,
			redirect: "https://chatgpt.com/connector/oauth/doctor", scope: "notes:read offline_access", era: "2025-06-18",
		},
		{
			name: "Cursor",
			register: `{"client_name":"Cursor","redirect_uris":["cursor://anysphere.cursor-mcp/oauth/callback","https://www.cursor.com/agents/mcp/oauth/callback",` +
				`"http://localhost:8787/callback"],"grant_types":["authorization_code","refresh_token"],"response_types":["code"],"token_endpoint_auth_method":"none"}`,
			redirect: "cursor://anysphere.cursor-mcp/oauth/callback", era: "2025-06-18",
		},
		{
			name: "VS Code", document: "https://vscode.dev/oauth/client-metadata.json",
			redirect: "http://127.0.0.1:33418/", era: "2025-11-25",
		},
		{
			name: "Claude Code", document: "https://claude.ai/oauth/claude-code-client-metadata",
			redirect: "http://localhost:60351/callback", era: "2025-11-25", // any port does
		},
	}
}

// ourselves is the client of the probes that need a token and play nobody.
func ourselves() client {
	const redirect = "http://localhost/callback"
	return client{name: "doctor", register: `{"client_name":"doctor","redirect_uris":["` + redirect + `"],"token_endpoint_auth_method":"none"}`,
		redirect: redirect, era: modern}
}
