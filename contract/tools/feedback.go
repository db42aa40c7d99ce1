package tools

import "siyuan-broker/contract"

// FeedbackSubmitIn is the input of feedback.submit.
type FeedbackSubmitIn struct {
	Description string `json:"description" doc:"What happened." minlen:"1" maxlen:"4000"`
	Impact      string `json:"impact,omitempty" doc:"Effect." maxlen:"1000"`
	Suggestion  string `json:"suggestion,omitempty" doc:"Idea." maxlen:"1000"`
	Agent       string `json:"agent,omitempty" legacy:"true" doc:"Client and model; default the agent's name." maxlen:"200"`
	Source      string `json:"source,omitempty" legacy:"true" doc:"Channel; default mcp." maxlen:"100"`
}

// FeedbackSubmitOut is the output of feedback.submit.
type FeedbackSubmitOut struct {
	Action    string `json:"action"`
	Success   bool   `json:"success"`
	ID        string `json:"id"`
	CreatedTS int64  `json:"createdTs"` // Unix milliseconds
}

// FeedbackSubmit is the one action of the feedback tool.
var FeedbackSubmit = define[FeedbackSubmitIn, FeedbackSubmitOut](Action{
	Name: "submit", Kind: Meta, Level: contract.Read, Scope: ScopeNone, AtBroker: true,
	Summary: "Tell whoever runs this service what does not work well.",
	Guidance: []string{
		"It is kept with the person's data and read by them and by whoever runs this service; nobody else gets it. Put no text of notes into it.",
	},
	Examples: []string{`{"description":"A search for a word of two characters finds nothing.","suggestion":"Say so in the answer."}`},
})

func feedbackTool() *Tool {
	return &Tool{
		Name:    "feedback",
		Title:   "Feedback",
		Purpose: "Report a fault of these tools.",
		Actions: []*Action{FeedbackSubmit.Action},
	}
}
