package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"siyuan-broker/broker/admission"
	"siyuan-broker/broker/mcpserver"
	"siyuan-broker/broker/token"
	"siyuan-broker/contract"
	"siyuan-broker/contract/tools"
	"siyuan-broker/tenants"
)

// serve runs a server until ctx ends, over TLS where there is a folder with a
// certificate, and prints a line once it listens.
func serve(ctx context.Context, listen, certificates string, h http.Handler) error {
	ln, err := (&certificateFolder{certificates}).listen(ctx, listen)
	if err != nil {
		return err
	}
	srv := &http.Server{Handler: h, ReadHeaderTimeout: 30 * time.Second}
	stopped := context.AfterFunc(ctx, func() { _ = srv.Close() })
	defer stopped()
	fmt.Println("ready")
	if err := srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// runEcho is the role "echo", the floor: the body comes back from the framework
// that the broker's own routes use.
func runEcho(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("echo", flag.ContinueOnError)
	listen, certificates := flags.String("listen", "", "address"), flags.String("tls", "", "folder with the certificate")
	if err := flags.Parse(args); err != nil {
		return err
	}
	e := echo.New()
	e.POST("/*", func(c echo.Context) error {
		body, err := io.ReadAll(c.Request().Body)
		if err != nil {
			return err
		}
		return c.Blob(http.StatusOK, "application/json", body)
	})
	return serve(ctx, *listen, *certificates, e)
}

// kernelCall makes one call to a kernel, as a person's own MCP server would.
type kernelCall func(ctx context.Context, body []byte) ([]byte, error)

func callerOf(address, authorization string) kernelCall {
	transport := &http.Transport{MaxIdleConnsPerHost: 256, DisableCompression: true}
	return func(ctx context.Context, body []byte) ([]byte, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		req.Header.Set("Content-Type", "application/json")
		if authorization != "" {
			req.Header.Set("Authorization", authorization)
		}
		resp, err := transport.RoundTrip(req)
		if err != nil {
			return nil, err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return nil, errors.New(resp.Status)
		}
		if resp.ContentLength < 0 {
			return io.ReadAll(resp.Body)
		}
		answer := make([]byte, resp.ContentLength)
		_, err = io.ReadFull(resp.Body, answer)
		return answer, err
	}
}

// opponentFlags are what both opponents are told.
type opponentFlags struct{ listen, certificates, kernel, authorization, public string }

func (f *opponentFlags) parse(role string, args []string) error {
	flags := flag.NewFlagSet(role, flag.ContinueOnError)
	flags.StringVar(&f.listen, "listen", "", "address")
	flags.StringVar(&f.certificates, "tls", "", "folder with the certificate")
	flags.StringVar(&f.kernel, "kernel", "", "URL that one call of a tool is one call to")
	flags.StringVar(&f.authorization, "authorization", "", "header for the kernel")
	flags.StringVar(&f.public, "public", "", "URLs by which agents come, separated by commas")
	return flags.Parse(args)
}

// runSDK is the role "sdk", the opponent: what a person would run instead, an
// MCP server on the official SDK beside the kernel. /mcp has no sessions,
// /legacy has.
func runSDK(ctx context.Context, args []string) error {
	var f opponentFlags
	if err := f.parse("sdk", args); err != nil {
		return err
	}
	call := callerOf(f.kernel, f.authorization)
	s := mcp.NewServer(&mcp.Implementation{Name: "opponent", Version: "1"}, nil)
	for _, name := range []string{"block", "document"} {
		s.AddTool(&mcp.Tool{Name: name, Description: "Calls SiYuan.", InputSchema: opponentSchema()},
			func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				body, err := call(ctx, req.Params.Arguments)
				if err != nil {
					return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: err.Error()}}}, nil
				}
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(body)}}}, nil
			})
	}
	server := func(*http.Request) *mcp.Server { return s }
	mux := http.NewServeMux()
	for path, stateless := range map[string]bool{"/mcp": true, "/legacy": false} {
		mux.Handle(path, mcp.NewStreamableHTTPHandler(server, &mcp.StreamableHTTPOptions{
			Stateless: stateless, JSONResponse: true, DisableLocalhostProtection: true, MaxRequestBodyBytes: requestMax}))
	}
	return serve(ctx, f.listen, f.certificates, mux)
}

// opponentSchema has a dozen parameters, of which the calls use up to four.
func opponentSchema() json.RawMessage {
	properties := map[string]any{}
	for _, name := range []string{"action", "id", "notebook", "path", "markdown", "title", "mode", "page", "pageSize", "dataType", "parentID", "icon"} {
		properties[name] = map[string]any{"type": "string", "description": "A parameter of the tool, described at usual length."}
	}
	schema, _ := json.Marshal(map[string]any{"type": "object", "properties": properties}) // strings always marshal
	return schema
}

// runLane is the role "lane": our own endpoint with its hot lane, but beside the
// kernel like the opponent and without a broker's tokens, tunnel and store.
func runLane(ctx context.Context, args []string) error {
	var f opponentFlags
	if err := f.parse("lane", args); err != nil {
		return err
	}
	beside := newBeside(callerOf(f.kernel, f.authorization))
	urls := strings.Split(f.public, ",")
	s, err := mcpserver.New(mcpserver.Config{PublicURLs: urls, Issuer: urls[0], Catalogue: tools.New(),
		Tokens: beside, Snapshots: beside, Relay: beside, Recorder: beside})
	if err != nil {
		return err
	}
	defer s.Close()
	return serve(ctx, f.listen, f.certificates, s)
}

// beside is everything the endpoint asks for, for one agent that may do
// everything in a kernel next door.
type beside struct {
	claims   token.Claims
	snapshot *admission.Snapshot
	call     kernelCall
}

func newBeside(call kernelCall) *beside {
	tenant, member, agent, instance := tenants.NewID(), tenants.NewID(), tenants.NewID(), tenants.NewID()
	return &beside{
		claims: token.Claims{ID: "bench", Tenant: tenant, Member: member, Agent: agent, ExpiresAt: time.Now().Add(24 * time.Hour)},
		snapshot: admission.Compile(&tenants.Snapshot{
			TenantID: tenant, TenantStatus: tenants.Active, Member: member, Role: tenants.Owner,
			Agent:     tenants.Agent{ID: agent, MemberID: member, InstanceID: instance, Name: "bench", Ceiling: contract.ReadWriteDelete},
			Instance:  tenants.Instance{ID: instance, DefaultLevel: contract.ReadWriteDelete, Enabled: true},
			Connector: &tenants.SnapshotConnector{ID: tenants.NewID(), Effect: &contract.PolicyEffect{MaxLevel: contract.ReadWriteDelete}},
		}, tools.New()),
		call: call,
	}
}

var (
	_ mcpserver.Tokens    = (*beside)(nil)
	_ mcpserver.Snapshots = (*beside)(nil)
	_ mcpserver.Relay     = (*beside)(nil)
	_ mcpserver.Recorder  = (*beside)(nil)
)

// Verify implements mcpserver.Tokens.
func (b *beside) Verify(context.Context, string) (token.Claims, error) { return b.claims, nil }

// Get implements mcpserver.Snapshots.
func (b *beside) Get(context.Context, tenants.ID, tenants.ID) (*admission.Snapshot, error) {
	return b.snapshot, nil
}

// Record implements mcpserver.Recorder.
func (b *beside) Record(tenants.Call) {}

// Call implements mcpserver.Relay: the kernel is next door.
func (b *beside) Call(ctx context.Context, _, _ string, call contract.Call, _ bool, _ func(contract.Progress)) contract.Result {
	return b.one(ctx, call)
}

// one is one call to the kernel with the arguments as they are.
func (b *beside) one(ctx context.Context, call contract.Call) contract.Result {
	body, err := b.call(ctx, call.Args)
	if err != nil {
		return contract.Result{Err: contract.Fail(contract.SiYuanOffline, "The kernel does not answer.").WithCause(err)}
	}
	return contract.Result{Body: body, Stats: contract.Stats{KernelCalls: 1}}
}
