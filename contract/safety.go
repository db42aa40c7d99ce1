package contract

// Safety is what a caller asked of the strict write protocol: to validate a write
// without doing it, or to do it only while its targets are as they were then.
type Safety struct {
	ValidateOnly bool   `json:"validate_only,omitempty"`
	Expect       string `json:"expect,omitempty"` // a state hash, or the beginning of one
}

// Asked reports whether the caller asked for anything.
func (s Safety) Asked() bool { return s != Safety{} }
