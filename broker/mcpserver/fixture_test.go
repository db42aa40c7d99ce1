//lint:file-ignore SA1019 The suite still calls what the newest revision deprecates.

package mcpserver

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The conformance suite calls tools, prompts and resources by names of its own.
// This file offers them; what is tested is everything in front of them.

// The smallest picture and the smallest sound that decoders accept: one pixel,
// no samples.
var (
	onePixel, _ = base64.StdEncoding.DecodeString("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==")
	silence     = []byte("RIFF\x24\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x40\x1f\x00\x00\x80\x3e\x00\x00\x02\x00\x10\x00data\x00\x00\x00\x00")
)

// buildFixture is Config.build for the suite.
func buildFixture(impl *mcp.Implementation, opts *mcp.ServerOptions) *mcp.Server {
	opts.Capabilities = &mcp.ServerCapabilities{
		Logging: &mcp.LoggingCapabilities{}, Tools: &mcp.ToolCapabilities{ListChanged: true},
		Prompts: &mcp.PromptCapabilities{ListChanged: true}, Resources: &mcp.ResourceCapabilities{ListChanged: true, Subscribe: true},
	}
	opts.CompletionHandler = func(_ context.Context, req *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
		return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{req.Params.Argument.Value + "ing"}, Total: 1}}, nil
	}
	opts.SubscribeHandler = func(context.Context, *mcp.SubscribeRequest) error { return nil }
	opts.UnsubscribeHandler = func(context.Context, *mcp.UnsubscribeRequest) error { return nil }
	f := fixture{mcp.NewServer(impl, opts), new(atomic.Int64)}
	f.contentTools()
	f.talkingTools()
	f.askingTools()
	f.prompts()
	f.resources()
	return f.Server
}

type fixture struct {
	*mcp.Server
	changes *atomic.Int64
}

type toolFunc = func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error)

func (f fixture) tool(name, schema string, run toolFunc) {
	f.AddTool(&mcp.Tool{Name: name, Description: "For the conformance suite.", InputSchema: json.RawMessage(schema)}, run)
}

func says(content ...mcp.Content) *mcp.CallToolResult { return &mcp.CallToolResult{Content: content} }

func words(format string, args ...any) mcp.Content {
	return &mcp.TextContent{Text: fmt.Sprintf(format, args...)}
}

const noArguments = `{"type":"object"}`

// contentTools answer with one kind of content each.
func (f fixture) contentTools() {
	fixed := map[string]func() *mcp.CallToolResult{
		"test_simple_text":   func() *mcp.CallToolResult { return says(words("This is a simple text response for testing.")) },
		"test_image_content": func() *mcp.CallToolResult { return says(&mcp.ImageContent{Data: onePixel, MIMEType: "image/png"}) },
		"test_audio_content": func() *mcp.CallToolResult { return says(&mcp.AudioContent{Data: silence, MIMEType: "audio/wav"}) },
		"test_embedded_resource": func() *mcp.CallToolResult {
			return says(&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{
				URI: "test://embedded-resource", MIMEType: "text/plain", Text: "This is an embedded resource content."}})
		},
		"test_multiple_content_types": func() *mcp.CallToolResult {
			return says(words("Multiple content types test:"), &mcp.ImageContent{Data: onePixel, MIMEType: "image/png"},
				&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{
					URI: "test://mixed-content-resource", MIMEType: "application/json", Text: `{"test":"data","value":123}`}})
		},
		"test_error_handling": func() *mcp.CallToolResult {
			return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{words("This tool intentionally returns an error for testing")}}
		},
	}
	for name, answer := range fixed {
		f.tool(name, noArguments, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return answer(), nil })
	}
	f.tool("json_schema_2020_12_tool", schema2020, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return says(words("ok")), nil
	})
	f.tool("test_parameter_in_header", `{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}`,
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return says(words("ok")), nil
		})
}

// schema2020 has the keywords that must reach clients untouched, as the suite
// spells them.
const schema2020 = `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object",
"$defs":{"address":{"$anchor":"addressDef","type":"object","properties":{"street":{"type":"string"},"city":{"type":"string"}}}},
"properties":{"name":{"type":"string"},"address":{"$ref":"#/$defs/address"},"contactMethod":{"type":"string","enum":["phone","email"]},"phone":{"type":"string"},"email":{"type":"string"}},
"allOf":[{"anyOf":[{"required":["phone"]},{"required":["email"]}]}],
"if":{"properties":{"contactMethod":{"const":"phone"}},"required":["contactMethod"]},"then":{"required":["phone"]},"else":{"required":["email"]},"additionalProperties":false}`

// talkingTools speak before they answer.
func (f fixture) talkingTools() {
	f.tool("test_tool_with_progress", noArguments, progressing)
	f.tool("test_streaming_elicitation", noArguments, progressing)
	for _, name := range []string{"test_tool_with_logging", "test_logging_tool"} {
		f.tool(name, noArguments, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			for _, line := range []string{"Tool execution started", "Tool processing data", "Tool execution completed"} {
				if err := req.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "info", Data: line}); err != nil {
					return nil, err
				}
			}
			return says(words("logged")), nil
		})
	}
	f.tool("test_trigger_tool_change", noArguments, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		f.tool(fmt.Sprintf("test_added_%d", f.changes.Add(1)), noArguments, nil)
		return says(words("changed")), nil
	})
	f.tool("test_trigger_prompt_change", noArguments, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		f.AddPrompt(&mcp.Prompt{Name: fmt.Sprintf("test_added_%d", f.changes.Add(1)), Description: "Added."}, nil)
		return says(words("changed")), nil
	})
	// Streams cannot be resumed here, so none is closed under its client.
	f.tool("test_reconnection", noArguments, progressing)
}

func progressing(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	token := req.Params.GetProgressToken()
	for _, done := range []float64{0, 50, 100} {
		if token == nil {
			break
		}
		if err := req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: done, Total: 100}); err != nil {
			return nil, err
		}
	}
	return says(words("done")), nil
}

// form is a question with one schema.
func form(message, properties string, required ...string) *mcp.ElicitParams {
	schema := map[string]any{"type": "object", "properties": json.RawMessage(properties)}
	if len(required) > 0 {
		schema["required"] = required
	}
	return &mcp.ElicitParams{Mode: "form", Message: message, RequestedSchema: schema}
}

func sampling(prompt string) *mcp.CreateMessageParams {
	return &mcp.CreateMessageParams{MaxTokens: 100, Messages: []*mcp.SamplingMessage{{Role: "user", Content: words("%s", prompt)}}}
}

// sealed is an opaque state that cannot be made outside of here.
func sealed(s string) string {
	mac := hmac.New(sha256.New, []byte("fixture"))
	mac.Write([]byte(s))
	return s + "." + hex.EncodeToString(mac.Sum(nil))
}

func intact(state string) bool {
	body, _, _ := strings.Cut(state, ".")
	return hmac.Equal([]byte(state), []byte(sealed(body)))
}

// askingTools need an answer of the client: in the older revisions on the
// session, in the newer by a second call.
func (f fixture) askingTools() {
	f.tool("test_sampling", `{"type":"object","properties":{"prompt":{"type":"string"}},"required":["prompt"]}`,
		func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			var in struct{ Prompt string }
			if err := json.Unmarshal(req.Params.Arguments, &in); err != nil {
				return nil, err
			}
			got, err := req.Session.CreateMessage(ctx, sampling(in.Prompt))
			if err != nil {
				return nil, err
			}
			return says(words("LLM response: %v", got.Content)), nil
		})
	elicits := func(name, schema string, question func(json.RawMessage) *mcp.ElicitParams) {
		f.tool(name, schema, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			got, err := req.Session.Elicit(ctx, question(req.Params.Arguments))
			if err != nil {
				return nil, err
			}
			return says(words("Elicitation completed: action=%s, content=%v", got.Action, got.Content)), nil
		})
	}
	elicits("test_elicitation", `{"type":"object","properties":{"message":{"type":"string"}},"required":["message"]}`, func(raw json.RawMessage) *mcp.ElicitParams {
		var in struct{ Message string }
		_ = json.Unmarshal(raw, &in) // an empty question fails the scenario
		return form(in.Message, `{"username":{"type":"string"},"email":{"type":"string"}}`, "username", "email")
	})
	elicits("test_elicitation_sep1034_defaults", noArguments, func(json.RawMessage) *mcp.ElicitParams {
		return form("Please check the defaults", `{"name":{"type":"string","default":"John Doe"},"age":{"type":"integer","default":30},"score":{"type":"number","default":95.5},
			"status":{"type":"string","enum":["active","inactive","pending"],"default":"active"},"verified":{"type":"boolean","default":true}}`)
	})
	elicits("test_elicitation_sep1330_enums", noArguments, func(json.RawMessage) *mcp.ElicitParams {
		titled := `[{"const":"value1","title":"First"},{"const":"value2","title":"Second"},{"const":"value3","title":"Third"}]`
		return form("Please choose", `{"untitledSingle":{"type":"string","enum":["option1","option2","option3"]},"titledSingle":{"type":"string","oneOf":`+titled+`},
			"legacyEnum":{"type":"string","enum":["opt1","opt2","opt3"],"enumNames":["One","Two","Three"]},
			"untitledMulti":{"type":"array","items":{"type":"string","enum":["option1","option2","option3"]}},"titledMulti":{"type":"array","items":{"anyOf":`+titled+`}}}`)
	})
	f.tool("test_missing_capability", noArguments, func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if caps := req.ClientCapabilities(); caps == nil || caps.Sampling == nil {
			data, _ := json.Marshal(mcp.MissingRequiredClientCapabilityData{RequiredCapabilities: &mcp.ClientCapabilities{Sampling: &mcp.SamplingCapabilities{}}})
			return nil, &jsonrpc.Error{Code: mcp.CodeMissingRequiredClientCapabilities, Message: "sampling is needed", Data: data}
		}
		return says(words("ok")), nil
	})
	f.rounds()
}

// rounds are the tools that answer with what they still need.
func (f fixture) rounds() {
	name := form("What is your name?", `{"name":{"type":"string"}}`, "name")
	confirm := form("Please confirm", `{"ok":{"type":"boolean"}}`, "ok")
	asks := func(tool string, state string, want func(*mcp.CallToolRequest) mcp.InputRequestMap) {
		f.tool(tool, noArguments, func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			if req.Params.RequestState != "" && !intact(req.Params.RequestState) {
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "invalid requestState"}
			}
			missing := want(req)
			for key := range missing {
				if _, ok := req.Params.InputResponses[key]; !ok {
					result := &mcp.CallToolResult{InputRequests: missing}
					if state != "" {
						result.RequestState = sealed(state)
					}
					return result, nil
				}
			}
			answers, err := json.Marshal(req.Params.InputResponses)
			if err != nil {
				return nil, err
			}
			return says(words("state-ok %s", answers)), nil
		})
	}
	always := func(m mcp.InputRequestMap) func(*mcp.CallToolRequest) mcp.InputRequestMap {
		return func(*mcp.CallToolRequest) mcp.InputRequestMap { return m }
	}
	asks("test_input_required_result_elicitation", "", always(mcp.InputRequestMap{"user_name": name}))
	asks("test_input_required_result_sampling", "", always(mcp.InputRequestMap{"capital_question": sampling("What is the capital of France?")}))
	asks("test_input_required_result_list_roots", "", always(mcp.InputRequestMap{"client_roots": &mcp.ListRootsParams{}}))
	asks("test_input_required_result_request_state", "one", always(mcp.InputRequestMap{"confirm": confirm}))
	asks("test_input_required_result_tampered_state", "one", always(mcp.InputRequestMap{"confirm": confirm}))
	asks("test_input_required_result_multiple_inputs", "one", always(mcp.InputRequestMap{
		"user_name": name, "greeting": sampling("Generate a greeting"), "client_roots": &mcp.ListRootsParams{}}))
	asks("test_input_required_result_capabilities", "", func(req *mcp.CallToolRequest) mcp.InputRequestMap {
		want := mcp.InputRequestMap{}
		if caps := req.ClientCapabilities(); caps != nil && caps.Sampling != nil {
			want["greeting"] = sampling("Generate a greeting")
		}
		if caps := req.ClientCapabilities(); caps != nil && caps.Elicitation != nil {
			want["user_name"] = name
		}
		return want
	})
	f.tool("test_input_required_result_multi_round", noArguments, func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		switch {
		case req.Params.RequestState == "":
			return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"step1": name}, RequestState: sealed("one")}, nil
		case req.Params.RequestState == sealed("one"):
			color := form("Step 2: What is your favorite color?", `{"color":{"type":"string"}}`, "color")
			return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"step2": color}, RequestState: sealed("two")}, nil
		}
		return says(words("all steps are done")), nil
	})
}

func (f fixture) prompts() {
	prompt := func(name string, args []string, messages func(map[string]string) []mcp.Content) {
		p := &mcp.Prompt{Name: name, Description: "For the conformance suite."}
		for _, a := range args {
			p.Arguments = append(p.Arguments, &mcp.PromptArgument{Name: a, Required: true})
		}
		f.AddPrompt(p, func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			result := &mcp.GetPromptResult{}
			for _, c := range messages(req.Params.Arguments) {
				result.Messages = append(result.Messages, &mcp.PromptMessage{Role: "user", Content: c})
			}
			return result, nil
		})
	}
	prompt("test_simple_prompt", nil, func(map[string]string) []mcp.Content {
		return []mcp.Content{words("This is a simple prompt for testing.")}
	})
	prompt("test_prompt_with_arguments", []string{"arg1", "arg2"}, func(a map[string]string) []mcp.Content {
		return []mcp.Content{words("Prompt with arguments: arg1='%s', arg2='%s'", a["arg1"], a["arg2"])}
	})
	prompt("test_prompt_with_embedded_resource", []string{"resourceUri"}, func(a map[string]string) []mcp.Content {
		return []mcp.Content{&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{
			URI: a["resourceUri"], MIMEType: "text/plain", Text: "Embedded resource content for testing."}}, words("Please process the embedded resource above.")}
	})
	prompt("test_prompt_with_image", nil, func(map[string]string) []mcp.Content {
		return []mcp.Content{&mcp.ImageContent{Data: onePixel, MIMEType: "image/png"}, words("Please analyze the image above.")}
	})
	f.AddPrompt(&mcp.Prompt{Name: "test_input_required_result_prompt", Description: "Asks first."}, func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		if len(req.Params.InputResponses) == 0 {
			return &mcp.GetPromptResult{InputRequests: mcp.InputRequestMap{
				"user_context": form("What context should the prompt use?", `{"context":{"type":"string"}}`, "context")}}, nil
		}
		return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: words("with context")}}}, nil
	})
}

func (f fixture) resources() {
	resource := func(c mcp.ResourceContents) {
		f.AddResource(&mcp.Resource{URI: c.URI, Name: strings.TrimPrefix(c.URI, "test://"), Description: "For the conformance suite.", MIMEType: c.MIMEType},
			func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
				return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{&c}}, nil
			})
	}
	resource(mcp.ResourceContents{URI: "test://static-text", MIMEType: "text/plain", Text: "This is the content of the static text resource."})
	resource(mcp.ResourceContents{URI: "test://static-binary", MIMEType: "image/png", Blob: onePixel})
	resource(mcp.ResourceContents{URI: "test://watched-resource", MIMEType: "text/plain", Text: "watched"})
	f.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "test://template/{id}/data", Name: "template", Description: "For the conformance suite.", MIMEType: "application/json"},
		func(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			id := strings.TrimSuffix(strings.TrimPrefix(req.Params.URI, "test://template/"), "/data")
			body, err := json.Marshal(map[string]any{"id": id, "templateTest": true, "data": "Data for ID: " + id})
			if err != nil {
				return nil, err
			}
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: req.Params.URI, MIMEType: "application/json", Text: string(body)}}}, nil
		})
}
