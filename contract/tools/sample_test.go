package tools

import (
	"encoding/json"

	"siyuan-broker/contract"
)

// sampleIn has a parameter of every type and with every tag.
type sampleIn struct {
	Notebook string            `json:"notebook" ref:"notebook" doc:"Notebook."`
	Text     string            `json:"text,omitempty" minlen:"1" maxlen:"5" doc:"Text."`
	Name     string            `json:"name,omitempty" minlen:"3" doc:"Name."`
	Mode     string            `json:"mode,omitempty" enum:"plain|dom" doc:"Mode."`
	Count    *int              `json:"count,omitempty" min:"0" max:"10" doc:"Count."`
	Ratio    float64           `json:"ratio,omitempty" min:"0.5" max:"2" doc:"Ratio."`
	Flag     *bool             `json:"flag,omitempty" doc:"Flag."`
	IDs      []string          `json:"ids,omitempty" ref:"block,rwd" minlen:"1" maxlen:"3" doc:"Ids."`
	Pair     []string          `json:"pair,omitempty" list:"ordered,complete" minlen:"2" doc:"Pair."`
	Free     []string          `json:"free,omitempty" doc:"Free."`
	Codes    []string          `json:"codes,omitempty" list:"words" doc:"Codes."`
	Numbers  []int             `json:"numbers,omitempty" min:"1" max:"9" doc:"Numbers."`
	Edits    []sampleEdit      `json:"edits,omitempty" doc:"Edits."`
	Conf     *sampleConf       `json:"conf,omitempty" doc:"Conf."`
	Attrs    map[string]string `json:"attrs,omitempty" doc:"Attrs."`
	Raw      json.RawMessage   `json:"raw,omitempty" doc:"Raw."`
	ScopeID  string            `json:"scopeID,omitempty" ref:"doc" absent:"all" doc:"Scope."`
	Path     string            `json:"path,omitempty" ref:"path" legacy:"true" doc:"Path."`
	sampleEmbedded
}

type sampleEmbedded struct {
	Deep string `json:"deep,omitempty" doc:"Deep."`
}

type sampleEdit struct {
	ParentID string `json:"parentID" ref:"block"`
	Data     string `json:"data"`
	Times    *int   `json:"times,omitempty" min:"1" max:"3"`
}

type sampleConf struct {
	Closed *bool   `json:"closed,omitempty"`
	Name   *string `json:"name,omitempty"`
}

type sampleOut struct {
	ID string `json:"id"`
}

// sample is an action of no tool that the tests of this package use.
func sample(rules ...Rule) *Action {
	a := define[sampleIn, sampleOut](Action{
		Name: "try", Kind: Write, Level: contract.ReadWrite, Scope: ScopeTargets, Summary: "Try.", Rules: rules,
		ParamAliases: map[string]string{"box": "notebook", "id": "ids"},
	})
	a.Tool = "sample"
	return a.Action
}
