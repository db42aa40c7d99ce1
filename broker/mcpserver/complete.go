package mcpserver

import (
	"context"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"siyuan-broker/contract/disclosure"
	"siyuan-broker/contract/disclosure/guides"
)

// maxCompletions is how many values one answer may have.
const maxCompletions = 100

// completion offers the values there are for the caller: languages of prompts,
// tools and actions to explain, skills. Ids of documents are not guessed.
func (s *Server) completion(_ context.Context, req *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
	who := requestOf(req.Extra)
	if who == nil {
		return nil, errNoPrincipal
	}
	values := []string{}
	for _, v := range s.candidates(req.Params, who) {
		if strings.HasPrefix(v, req.Params.Argument.Value) {
			values = append(values, v)
		}
	}
	total := len(values)
	return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: values[:min(total, maxCompletions)], Total: total, HasMore: total > maxCompletions}}, nil
}

func (s *Server) candidates(p *mcp.CompleteParams, who *Request) (values []string) {
	name, known := p.Argument.Name, map[string]string{}
	if p.Context != nil {
		known = p.Context.Arguments
	}
	switch {
	case p.Ref.Type == "ref/prompt" && name == langArgument:
		return guides.Languages()
	case p.Ref.Type != "ref/resource":
		return nil
	case strings.HasPrefix(p.Ref.URI, guides.SkillURI) && name == "name":
		for _, k := range s.profileOf(who.Snapshot).guides.Skills {
			values = append(values, k.Name)
		}
	case strings.HasPrefix(p.Ref.URI, disclosure.HelpURI) && name == "tool":
		for _, t := range who.Snapshot.Catalogue().Tools() {
			if offered(t, who.Snapshot) {
				values = append(values, t.Name)
			}
		}
	case strings.HasPrefix(p.Ref.URI, disclosure.HelpURI) && name == "action":
		if t, ok := who.Snapshot.Catalogue().Tool(known["tool"]); ok {
			for _, a := range t.Actions {
				if !a.ByName && who.Snapshot.Enabled(a) {
					values = append(values, a.Name)
				}
			}
		}
	}
	return values
}
