package mcpserver

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"siyuan-broker/broker/admission"
	"siyuan-broker/contract"
	"siyuan-broker/contract/disclosure"
	"siyuan-broker/contract/disclosure/guides"
)

const (
	jsonType     = "application/json"
	markdownType = "text/markdown"
)

// resourcesOf are the resources of a snapshot: help and skills, which never
// leave the broker, and the answers of calls it admits.
func resourcesOf(snap *admission.Snapshot, set *guides.Set) []*mcp.Resource {
	list := []*mcp.Resource{
		{URI: disclosure.HelpIndexURI, Name: "help", Title: "Help on all tools", MIMEType: jsonType, Description: "Every tool and action you may use, with signatures."},
		{URI: guides.SkillIndexURI, Name: "skills", Title: "Skills", MIMEType: jsonType, Description: "The skills there are, with their digests.", Size: int64(len(set.Index))},
	}
	for _, p := range set.Pages {
		list = append(list, &mcp.Resource{URI: p.URI(), Name: p.Name, Title: p.Title, MIMEType: markdownType, Description: p.Description, Size: int64(len(p.Text))})
	}
	for _, k := range set.Skills {
		r := mcp.Resource{URI: k.URI(), Name: k.Name, Title: k.Title, MIMEType: markdownType, Description: k.Description, Size: int64(len(k.Text))}
		list = append(list, &r)
		if snap.Settings.SkillsExtension {
			file := r
			file.URI = k.FileURI()
			list = append(list, &file)
		}
	}
	for _, c := range disclosure.Calls() {
		if snap.Enabled(c.Action) {
			list = append(list, &mcp.Resource{URI: c.URI, Name: c.Name, Title: c.Title, MIMEType: jsonType, Description: c.Description})
		}
	}
	return list
}

func templatesOf(snap *admission.Snapshot, set *guides.Set) []*mcp.ResourceTemplate {
	list := []*mcp.ResourceTemplate{{
		URITemplate: disclosure.HelpURI + "{tool}", Name: "tool-help", Title: "Help on a tool", MIMEType: jsonType,
		Description: "The actions of one tool, as its action=help gives them.",
	}, {
		URITemplate: disclosure.HelpURI + "{tool}/{action}", Name: "action-help", Title: "Help on an action", MIMEType: jsonType,
		Description: "Exact schema, rules and examples of one action, as action=help with topic gives them.",
	}}
	if len(set.Skills) > 0 {
		list = append(list, &mcp.ResourceTemplate{
			URITemplate: guides.SkillURI + "{name}", Name: "skill", Title: "A skill", MIMEType: markdownType,
			Description: "How to do one kind of work with these tools.",
		})
	}
	if snap.Enabled(disclosure.DocAction()) {
		list = append(list, &mcp.ResourceTemplate{
			URITemplate: disclosure.DocURI + "{id}", Name: "document", Title: "A document", MIMEType: jsonType,
			Description: "A document as Markdown with its outline, by id; a long one up to nextWindow.",
		}, &mcp.ResourceTemplate{
			URITemplate: disclosure.DocURI + "{id}" + disclosure.DocStart + "{blockStart}", Name: "document-window", Title: "More of a document", MIMEType: jsonType,
			Description: "A long document from nextWindow's blockStart on.",
		})
	}
	return list
}

// readResource answers resources/read of every resource.
func (s *Server) readResource(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	who := requestOf(req.Extra)
	if who == nil {
		return nil, errNoPrincipal
	}
	uri := req.Params.URI
	if call, ok := disclosure.CallAt(uri); ok {
		return s.readCall(ctx, who, uri, call)
	}
	text, media, ok := s.textAt(uri, who)
	if !ok {
		return nil, mcp.ResourceNotFoundError(uri)
	}
	return contentsOf(uri, media, text), nil
}

var errNoPrincipal = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the request has no principal"}

func contentsOf(uri, media, text string) *mcp.ReadResourceResult {
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: uri, MIMEType: media, Text: text}}}
}

// readCall answers with what a tool call gives, made as agents make them: it is
// decided, counted and recorded as one.
func (s *Server) readCall(ctx context.Context, who *Request, uri string, call disclosure.Call) (*mcp.ReadResourceResult, error) {
	if !who.Snapshot.Enabled(call.Action) {
		return nil, mcp.ResourceNotFoundError(uri)
	}
	arguments, err := withActionName(call)
	if err != nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the call behind the resource cannot be made"}
	}
	body, failed := s.Invoke(ctx, who, call.Action.Tool, arguments, nil)
	if !failed {
		return contentsOf(uri, jsonType, string(body)), nil
	}
	var answer struct {
		Error contract.Error `json:"error"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the error of the call cannot be read"}
	}
	switch answer.Error.Type {
	case contract.TypeNotFound, contract.TypeValidation: // of its id or its place: no such document
		return nil, mcp.ResourceNotFoundError(uri)
	}
	return nil, &jsonrpc.Error{Code: codeUnavailable, Message: strings.TrimSpace(answer.Error.Message + " " + answer.Error.Hint), Data: body}
}

func withActionName(call disclosure.Call) (json.RawMessage, error) {
	args := map[string]json.RawMessage{}
	if err := json.Unmarshal([]byte(call.Args), &args); err != nil {
		return nil, err
	}
	args[disclosure.ActionParam] = json.RawMessage(`"` + call.Action.Name + `"`)
	return json.Marshal(args)
}

// textAt is the text that a URI names, if there is any for the caller.
func (s *Server) textAt(uri string, who *Request) (text, media string, ok bool) {
	set := s.profileOf(who.Snapshot).guides
	if uri == guides.SkillIndexURI {
		return string(set.Index), jsonType, true
	}
	for _, p := range set.Pages {
		if p.URI() == uri {
			return p.Text, markdownType, true
		}
	}
	for _, k := range set.Skills {
		if k.URI() == uri || k.FileURI() == uri && who.Snapshot.Settings.SkillsExtension {
			return k.Text, markdownType, true
		}
	}
	answer, ok := s.helpAt(uri, who)
	if !ok {
		return "", "", false
	}
	body, err := json.Marshal(answer)
	return string(body), jsonType, err == nil
}

// helpAt is the help that a URI names, if there is any for the caller. Names are
// exact here: an alias is no second resource.
func (s *Server) helpAt(uri string, who *Request) (any, bool) {
	if uri == disclosure.HelpIndexURI {
		return disclosure.HelpIndex(who.Snapshot.Catalogue(), who.Snapshot.Enabled), true
	}
	rest, ok := strings.CutPrefix(uri, disclosure.HelpURI)
	name, topic, hasTopic := strings.Cut(rest, "/")
	tool, known := who.Snapshot.Catalogue().Tool(name)
	if !ok || !known || !offered(tool, who.Snapshot) {
		return nil, false
	}
	if a, exact := tool.Action(topic); hasTopic && (!exact || a.ByName) {
		return nil, false
	}
	answer, err := disclosure.Help(tool, topic, who.Snapshot.Enabled, who.Snapshot.Strict())
	return answer, err == nil
}
