package mcpserver

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"siyuan-broker/contract/disclosure"
)

const jsonType = "application/json"

// addHelp offers help as resources: they never leave the broker, and what an
// agent may not use has none. Every agent sees the same index and templates;
// what they lead to depends on the snapshot of the request.
func (s *Server) addHelp(srv *mcp.Server) {
	srv.AddResource(&mcp.Resource{
		URI: disclosure.HelpIndexURI, Name: "help", Title: "Help on all tools", MIMEType: jsonType,
		Description: "Every tool and action you may use, with signatures.",
	}, s.readHelp)
	srv.AddResourceTemplate(&mcp.ResourceTemplate{
		URITemplate: disclosure.HelpURI + "{tool}", Name: "tool-help", Title: "Help on a tool", MIMEType: jsonType,
		Description: "The actions of one tool, as its action=help gives them.",
	}, s.readHelp)
	srv.AddResourceTemplate(&mcp.ResourceTemplate{
		URITemplate: disclosure.HelpURI + "{tool}/{action}", Name: "action-help", Title: "Help on an action", MIMEType: jsonType,
		Description: "Exact schema, rules and examples of one action, as action=help with topic gives them.",
	}, s.readHelp)
}

func (s *Server) readHelp(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	who := requestOf(req.Extra)
	if who == nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the request has no principal"}
	}
	answer, ok := s.helpAt(req.Params.URI, who)
	if !ok {
		return nil, mcp.ResourceNotFoundError(req.Params.URI)
	}
	body, err := json.Marshal(answer)
	if err != nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "help cannot be encoded"}
	}
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: req.Params.URI, MIMEType: jsonType, Text: string(body)}}}, nil
}

// helpAt is the help that a URI names, if there is any for the caller. Names are
// exact here: an alias is no second resource.
func (s *Server) helpAt(uri string, who *Request) (any, bool) {
	if uri == disclosure.HelpIndexURI {
		return disclosure.HelpIndex(s.cfg.Catalogue, who.Snapshot.Enabled), true
	}
	rest, ok := strings.CutPrefix(uri, disclosure.HelpURI)
	name, topic, hasTopic := strings.Cut(rest, "/")
	tool, known := s.cfg.Catalogue.Tool(name)
	if !ok || !known || !offered(tool, who.Snapshot) {
		return nil, false
	}
	if _, exact := tool.Action(topic); hasTopic && !exact {
		return nil, false
	}
	answer, err := disclosure.Help(tool, topic, who.Snapshot.Enabled, who.Snapshot.Strict())
	return answer, err == nil
}
