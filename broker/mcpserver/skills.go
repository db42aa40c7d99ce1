package mcpserver

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"siyuan-broker/contract/disclosure/guides"
)

// The Skills extension of MCP (SEP-2640), which a tenant switches on. Skills are
// resources anyway; the extension adds a list with digests for clients that load
// skills by themselves.
const (
	skillsExtension  = "io.modelcontextprotocol/skills"
	methodSkillsList = "skills/list"
	methodSkillsGet  = "skills/get"
)

// skillEntry is a skill as the extension lists it: one file.
type skillEntry struct {
	URI         string            `json:"uri"`
	Frontmatter map[string]string `json:"frontmatter"`
	Resources   []skillFile       `json:"resources"`
}

type skillFile struct {
	URI    string `json:"uri"`
	Digest string `json:"digest"` // of the bytes that resources/read gives
	Size   int    `json:"size"`
}

func skillEntryOf(k guides.Skill) skillEntry {
	return skillEntry{
		URI: k.FileURI(), Frontmatter: map[string]string{"name": k.Name, "description": k.Description},
		Resources: []skillFile{{k.FileURI(), k.Digest, len(k.Text)}},
	}
}

// kept is what the results of the extension's methods have in common. The era
// with sessions knows none of it.
type kept struct {
	mcp.ResultBase
	ResultType string `json:"resultType,omitempty"`
	TTLMs      int    `json:"ttlMs,omitempty"`
	CacheScope string `json:"cacheScope,omitempty"`
}

func keptFor(who *Request) kept {
	if who.session != nil {
		return kept{}
	}
	return kept{ResultType: "complete", TTLMs: listTTL, CacheScope: "private"}
}

type skillsListParams struct {
	mcp.ParamsBase
	Cursor string `json:"cursor,omitempty"` // all are on one page
}

type skillsListResult struct {
	kept
	Skills []skillEntry `json:"skills"`
}

type skillsGetParams struct {
	mcp.ParamsBase
	URI string `json:"uri"`
}

type skillsGetResult struct {
	kept
	Skill skillEntry `json:"skill"`
}

// addSkills registers the extension's methods. They are answered only where
// withSkills lets them through.
func (s *Server) addSkills(srv *mcp.Server) {
	own(srv, methodSkillsList, func(ctx context.Context, _ *mcp.ServerSession, _ *skillsListParams) (*skillsListResult, error) {
		who := requestFrom(ctx)
		out := &skillsListResult{kept: keptFor(who), Skills: []skillEntry{}}
		for _, k := range s.profileOf(who.Snapshot).guides.Skills {
			out.Skills = append(out.Skills, skillEntryOf(k))
		}
		return out, nil
	})
	own(srv, methodSkillsGet, func(ctx context.Context, _ *mcp.ServerSession, p *skillsGetParams) (*skillsGetResult, error) {
		who := requestFrom(ctx)
		for _, k := range s.profileOf(who.Snapshot).guides.Skills {
			if p != nil && p.URI == k.FileURI() {
				return &skillsGetResult{keptFor(who), skillEntryOf(k)}, nil
			}
		}
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "There is no such skill."}
	})
}

// own registers a method that is not among MCP's. The SDK refuses only names that
// are.
func own[P any, PP interface {
	*P
	mcp.Params
}, R mcp.Result](srv *mcp.Server, method string, answer func(context.Context, *mcp.ServerSession, PP) (R, error)) {
	if err := mcp.AddReceivingCustomMethod(srv, method, answer); err != nil {
		panic(err)
	}
}

// withSkills has the extension's methods unknown where the tenant has it off.
func (s *Server) withSkills(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if method != methodSkillsList && method != methodSkillsGet {
			return next(ctx, method, req)
		}
		who := requestOf(req.GetExtra())
		if who == nil || !who.Snapshot.Settings.SkillsExtension {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "method not found: " + method}
		}
		// A session's own context names the request that began it.
		return next(context.WithValue(ctx, requestKey{}, who), method, req)
	}
}
