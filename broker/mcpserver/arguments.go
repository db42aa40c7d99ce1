package mcpserver

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"strings"

	"github.com/google/uuid"

	"siyuan-broker/contract"
	"siyuan-broker/contract/disclosure"
	"siyuan-broker/tenants"
)

// envelope is what a call's arguments say besides the action's own parameters.
type envelope struct {
	action    string
	topic     string
	requestID string          // "" if none was given
	rest      json.RawMessage // the object without action and request id
}

// maxWord bounds, in bytes, the words that errors may repeat.
const maxWord = 128

// open reads the envelope of raw arguments. Names may be spelled in any case,
// with dashes or underscores.
func open(raw json.RawMessage) (envelope, *contract.Error) {
	args := map[string]json.RawMessage{}
	if raw = bytes.TrimSpace(raw); len(raw) > 0 && !bytes.Equal(raw, []byte("null")) {
		if err := json.Unmarshal(raw, &args); err != nil {
			return envelope{}, contract.InvalidFields(contract.Field{Message: "the arguments must be one JSON object"})
		}
	}
	var e envelope
	for _, field := range []struct {
		name string
		into *string
		keep bool
	}{{disclosure.ActionParam, &e.action, false}, {disclosure.RequestParam, &e.requestID, false}, {disclosure.TopicParam, &e.topic, true}} {
		key, ok := find(args, field.name)
		if !ok {
			continue
		}
		err := json.Unmarshal(args[key], field.into) // null leaves it empty
		if !field.keep {
			if err != nil || len(*field.into) > maxWord {
				return envelope{}, contract.InvalidFields(contract.Field{Path: field.name, Message: "must be a short string"})
			}
			delete(args, key)
		}
	}
	if len(e.topic) > maxWord {
		e.topic = e.topic[:maxWord]
	}
	rest, err := json.Marshal(args)
	if err != nil { // the values were valid a moment ago
		return envelope{}, contract.Internalf(err, "encode arguments")
	}
	e.rest = rest
	return e, nil
}

// find is the key of a map that means the given camelCase name; the exact one
// first.
func find(args map[string]json.RawMessage, name string) (string, bool) {
	if _, ok := args[name]; ok {
		return name, true
	}
	plain := strings.NewReplacer("_", "", "-", "")
	for key := range args {
		if strings.EqualFold(plain.Replace(key), name) {
			return key, true
		}
	}
	return "", false
}

// requestID is the id of a call, for a write also its at-most-once key: the one
// given, else in a legacy session one that the same message always gets, else a
// new one.
func requestID(given string, who *Request) (string, *contract.Error) {
	if given != "" {
		id, err := uuid.Parse(given)
		if err != nil || len(given) != 36 || id.Version() != 7 || id.Variant() != uuid.RFC4122 {
			return "", contract.InvalidFields(contract.Field{Path: disclosure.RequestParam, Message: "must be a UUIDv7, such as " + tenants.NewID().String()})
		}
		return id.String(), nil
	}
	if who.Session == "" || who.RPCID == "" {
		return tenants.NewID().String(), nil
	}
	// The form of a UUIDv7: the session's time, then a digest of session and
	// message instead of chance.
	sum := sha256.Sum256([]byte(who.Snapshot.Principal.Key() + "\n" + who.Session + "\n" + who.RPCID))
	id := who.born
	copy(id[6:], sum[:10])
	id[6] = id[6]&0x0f | 0x70
	id[8] = id[8]&0x3f | 0x80
	return id.String(), nil
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
