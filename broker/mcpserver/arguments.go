package mcpserver

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"siyuan-broker/contract"
	"siyuan-broker/contract/disclosure"
	"siyuan-broker/contract/tools"
	"siyuan-broker/tenants"
)

// envelope is what a call's arguments say besides the action's own parameters.
type envelope struct {
	action    string
	topic     string
	requestID string          // "" if none was given
	rest      json.RawMessage // the object without those of the broker

	confirmation string // "" if none was given
}

// maxConfirmation bounds a sealed confirmation; ours are shorter.
const maxConfirmation = 4096

// maxWord bounds, in bytes, the words that errors may repeat.
const maxWord = 128

// open reads the envelope of raw arguments. Names may be spelled in any case,
// with dashes or underscores; the exact one counts first, and of a name that
// stands there twice the last.
func open(raw json.RawMessage) (envelope, *contract.Error) {
	if raw = bytes.TrimSpace(raw); len(raw) == 0 || string(raw) == "null" {
		raw = json.RawMessage("{}")
	}
	named := [...]named{{name: disclosure.ActionParam}, {name: disclosure.RequestParam}, {name: disclosure.TopicParam}, {name: disclosure.ConfirmParam}}
	s := scanner{text: raw}
	for key, more := s.enter(); more; key, more = s.next() {
		key, value := unescape(key), s.value()
		for i := range named {
			named[i].see(key, value)
		}
	}
	if !s.end() {
		return envelope{}, contract.InvalidFields(contract.Field{Message: "the arguments must be one JSON object"})
	}
	action, request, topic := &named[0], &named[1], &named[2]
	var e envelope
	var err *contract.Error
	if e.action, err = action.word(); err == nil {
		e.requestID, err = request.word()
	}
	if err != nil {
		return envelope{}, err
	}
	e.topic, _ = stringOf(topic.value) // an odd one is not one
	e.topic = e.topic[:min(len(e.topic), maxWord)]
	e.rest = raw
	if action.key != nil || request.key != nil {
		e.rest = without(raw, action.key, request.key)
	}
	if confirm := named[3]; confirm.key != nil {
		e.confirmation, _ = stringOf(confirm.value)
		e.confirmation = e.confirmation[:min(len(e.confirmation), maxConfirmation)]
		e.rest = without(e.rest, confirm.key, nil)
	}
	return e, nil
}

// named is a member that is looked for, and what was found.
type named struct {
	name       string
	key, value []byte // nil: not there
}

func (n *named) see(key, value []byte) {
	switch exact := string(key) == n.name; {
	case exact, string(n.key) != n.name && spells(key, n.name):
		n.key, n.value = key, value
	}
}

// word is a short string that errors may repeat, "" where there is none.
func (n *named) word() (string, *contract.Error) {
	word, ok := stringOf(n.value)
	if !ok || len(word) > maxWord {
		return "", contract.InvalidFields(contract.Field{Path: n.name, Message: "must be a short string"})
	}
	return word, nil
}

// stringOf decodes a string, or null or nothing as "".
func stringOf(value []byte) (string, bool) {
	if value == nil {
		return "", true
	}
	if value[0] == '"' && bytes.IndexByte(value, '\\') < 0 {
		return string(value[1 : len(value)-1]), true
	}
	var text string
	err := json.Unmarshal(value, &text)
	return text, err == nil
}

// unescape gives a key as it was meant.
func unescape(key []byte) []byte {
	if bytes.IndexByte(key, '\\') < 0 {
		return key
	}
	text, _ := stringOf(slices.Concat([]byte{'"'}, key, []byte{'"'})) // the scanner found it good
	return []byte(text)
}

// spells reports whether key is a camelCase name in other words.
func spells(key []byte, name string) bool {
	i := 0
	for _, c := range key {
		switch {
		case c == '_' || c == '-':
		case i < len(name) && lower(c) == lower(name[i]):
			i++
		default:
			return false
		}
	}
	return i == len(name)
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c |= 0x20
	}
	return c
}

// without is an object without the members of two keys.
func without(raw []byte, a, b []byte) []byte {
	rest := make([]byte, 1, len(raw))
	rest[0] = '{'
	s := scanner{text: raw}
	for key, more := s.enter(); more; key, more = s.next() {
		from := s.keyAt
		key, _ := unescape(key), s.value()
		if a != nil && bytes.Equal(key, a) || b != nil && bytes.Equal(key, b) {
			continue
		}
		if len(rest) > 1 {
			rest = append(rest, ',')
		}
		rest = append(rest, raw[from:s.at]...)
	}
	return append(rest, '}')
}

// requestID is the id of a call, for a write also its at-most-once key: the one
// given, else in a legacy session one that the same message always gets, else a
// new one, which then is the first of its kind.
func requestID(given string, who *Request) (_ string, first bool, _ *contract.Error) {
	if given != "" {
		id, err := uuid.Parse(given)
		if err != nil || len(given) != 36 || id.Version() != 7 || id.Variant() != uuid.RFC4122 {
			return "", false, contract.InvalidFields(contract.Field{Path: disclosure.RequestParam, Message: "must be a UUIDv7, such as " + tenants.NewID().String()})
		}
		return id.String(), false, nil
	}
	if who.Session == "" || who.RPCID == "" {
		return tenants.NewID().String(), true, nil
	}
	// The form of a UUIDv7: the session's time, then a digest of session and
	// message instead of chance.
	sum := sha256.Sum256([]byte(who.Snapshot.Principal.Key() + "\n" + who.Session + "\n" + who.RPCID))
	id := who.born
	copy(id[6:], sum[:10])
	id[6] = id[6]&0x0f | 0x70
	id[8] = id[8]&0x3f | 0x80
	return id.String(), false, nil
}

// maxAhead is how far the clock of whoever makes request ids may be ahead of ours.
const maxAhead = 5 * time.Second

// notAhead lets no write go home under an id of a time to come: it waits until
// the clock has got there. A connector that takes over from another one can
// then tell by their time which ids the other one may have been sent.
func (s *Server) notAhead(ctx context.Context, id string) *contract.Error {
	made := time.Unix(uuid.MustParse(id).Time().UnixTime())
	ahead := made.Sub(s.cfg.Now())
	switch {
	case ahead <= 0:
		return nil
	case ahead > maxAhead:
		return contract.InvalidFields(contract.Field{Path: disclosure.RequestParam, Message: fmt.Sprintf("is of a time to come, %s ahead of this service: correct the clock of its maker, or leave it out", ahead.Round(time.Second))})
	}
	t := time.NewTimer(ahead)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return contract.Fail(contract.Timeout, "The call ended before it was begun; nothing was changed.").WithCause(ctx.Err())
	}
}

// conversation names the legacy session of a write at home, without being of use
// to anybody.
func conversation(who *Request, kind tools.Kind) string {
	if who.Session == "" || !kind.Mutates() {
		return ""
	}
	sum := sha256.Sum256([]byte(who.Session))
	var name [24]byte
	hex.Encode(name[:], sum[:12])
	return string(name[:])
}

// withRequestID adds the request id to the result of a write, so that the
// caller can ask for the same outcome again.
func withRequestID(body json.RawMessage, id string) json.RawMessage {
	rest, isObject := bytes.CutPrefix(bytes.TrimSpace(body), []byte("{"))
	if !isObject {
		return body // the catalogue has no write that answers anything but an object
	}
	head := `{"` + disclosure.RequestParam + `":"` + id + `"`
	if !bytes.HasPrefix(bytes.TrimSpace(rest), []byte("}")) {
		head += ","
	}
	return append([]byte(head), rest...)
}
