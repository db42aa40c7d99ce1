package mcpserver

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"siyuan-broker/contract/disclosure/guides"
)

// The arguments of every prompt.
const (
	langArgument = "lang"
	taskArgument = "task"
)

func promptOf(p guides.Prompt) *mcp.Prompt {
	return &mcp.Prompt{
		Name: p.Name, Title: p.Title, Description: p.In(guides.English).Description,
		Arguments: []*mcp.PromptArgument{
			{Name: langArgument, Title: "Language", Description: "Of the prompt: " + strings.Join(guides.Languages(), " or ") + "; " + guides.English + " without it."},
			{Name: taskArgument, Title: "Task", Description: "What it is about, in the person's words."},
		},
	}
}

// taskHeads introduce what the person asked for.
var taskHeads = map[string]string{guides.English: "What the person asks for:", "zh": "用户的要求："}

// getPrompt tells a workflow as far as the caller may use its steps.
func (s *Server) getPrompt(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
	who := requestOf(req.Extra)
	if who == nil {
		return nil, errNoPrincipal
	}
	lang := req.Params.Arguments[langArgument]
	if lang == "" {
		lang = guides.English
	}
	if !slices.Contains(guides.Languages(), lang) {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "lang must be " + strings.Join(guides.Languages(), " or ") + "."}
	}
	for _, p := range s.profileOf(who.Snapshot).guides.Prompts {
		if p.Name != req.Params.Name {
			continue
		}
		text := p.In(lang).Text
		if task := strings.TrimSpace(req.Params.Arguments[taskArgument]); task != "" {
			text += "\n" + taskHeads[lang] + "\n\n" + task + "\n"
		}
		return &mcp.GetPromptResult{Description: p.In(lang).Description, Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: text}}}}, nil
	}
	return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("unknown prompt %q", req.Params.Name)}
}
