package samplekernel_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"regexp"
	"sort"
	"strings"

	"github.com/google/go-cmp/cmp"
)

// Two answers are equal when status, content type and body are, after these
// changes to the bodies of both:
//
//   - an id or time of the day of the recording becomes one word: the kernel makes
//     those up, and the recorder gave all ids of its own an earlier date;
//   - the attributes of a block in kramdown, DOM and the ial column are sorted: their
//     order is random in a real kernel;
//   - data-node-index is dropped from DOM;
//   - numbers of time and size, the hash column and spelled-out ages become one word;
//   - the ids of database cells are not compared, the hashes that name snapshots, their
//     files and zips become one word, as do the names of the machine;
//   - reference ids and the columns of a database row are sorted: no order is promised
//     for them;
//   - machine words become the placeholders of the recorder.

var (
	madeUpID    = regexp.MustCompile(`20261130\d{6}-[0-9a-z]{7}`)
	madeUpTime  = regexp.MustCompile(`20261130\d{6}`)
	spokenTime  = regexp.MustCompile(`2026-11-30[ -]\d\d:?\d\d:?\d\d`)
	attrList    = regexp.MustCompile(`\{: [^\n]*?"\}`)
	attribute   = regexp.MustCompile(`[a-zA-Z][a-zA-Z0-9-]*="[^"]*"`)
	openTag     = regexp.MustCompile(`<(?:div|span) [^<>]*>`)
	nodeIndex   = regexp.MustCompile(` data-node-index="\d+"`)
	historyTime = regexp.MustCompile(`2026-11-30-\d{6}`)
	snapshotID  = regexp.MustCompile(`\b(?:[0-9a-f]{40}|[0-9a-f]{32})\b`)
	unixSeconds = regexp.MustCompile(`^179604\d{4}$`)
	shortID     = regexp.MustCompile(`^[0-9a-z]{7}$`)
)

func sortAttributes(s string) string {
	list := attribute.FindAllString(s, -1)
	sort.Strings(list)
	i := -1
	return attribute.ReplaceAllStringFunc(s, func(string) string { i++; return list[i] })
}

func normaliseText(s string) string {
	s = madeUpID.ReplaceAllString(s, "MADE-UP-ID")
	s = madeUpTime.ReplaceAllString(s, "NOW")
	s = spokenTime.ReplaceAllString(s, "NOW")
	s = unixSeconds.ReplaceAllString(s, "NOW")
	s = snapshotID.ReplaceAllString(s, "MADE-UP-ID")
	s = nodeIndex.ReplaceAllString(s, "")
	s = attrList.ReplaceAllStringFunc(s, sortAttributes)
	return openTag.ReplaceAllStringFunc(s, sortAttributes)
}

// volatile fields say when or how big; only whether they are there is compared.
func volatile(key string) bool {
	switch key {
	case "mtime", "ctime", "hMtime", "hCtime", "size", "hSize", "hash", "createdAt", "updatedAt", "hCreated", "hUpdated", "viewedAt", "openAt", "due", "lastReview", "systemID", "systemName":
		return true
	}
	return false
}

// unordered fields are lists without a promised order.
func unordered(key string) bool {
	return key == "refIDs" || key == "refDefs" || key == "defIDs" || key == "keyValues"
}

func normalise(key string, v any) any {
	switch v := v.(type) {
	case string:
		if volatile(key) || (key == "id" || key == "kernel") && shortID.MatchString(v) {
			return "VOLATILE"
		}
		return normaliseText(v)
	case float64:
		if volatile(key) || key == "updated" || v > 1.7e12 {
			return "VOLATILE"
		}
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = normalise("", e)
		}
		if unordered(key) {
			sort.Slice(out, func(i, j int) bool { return fmt.Sprint(out[i]) < fmt.Sprint(out[j]) })
		}
		return out
	case map[string]any:
		if _, cell := v["valueType"]; cell { // a cell that is not stored gets an id with the time of its row
			v["id"] = "VOLATILE"
			if value, ok := v["value"].(map[string]any); ok {
				value["id"] = "VOLATILE"
			}
		}
		if _, ofRow := v["blockID"].(string); ofRow && v["keyID"] != nil && v["id"] != nil {
			v["id"] = "VOLATILE"
		}
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[normaliseText(k)] = normalise(k, e)
		}
		return out
	}
	return v
}

// compare sends a recording and tells how the answer differs, or nothing.
func (p *player) compare(r recording) string {
	p.t.Helper()
	status, contentType, body := p.send(r)
	p.clock.advance(1e6)
	p.learn(r.Response.Body, body)
	if status != r.Response.Status {
		return fmt.Sprintf("status %d, recorded %d", status, r.Response.Status)
	}
	if want := r.Response.ContentType; contentType != want && want != "" {
		return fmt.Sprintf("content type %q, recorded %q", contentType, want)
	}
	want, got := p.decode(r.Response.Body), p.bodyValue(body, r.Response.ContentType)
	if m, ok := want.(map[string]any); ok {
		if _, cut := m["$truncated"]; cut {
			return ""
		}
		if data, isBinary := m["$base64"].(string); isBinary {
			if base64.StdEncoding.EncodeToString(body) != data {
				return "other bytes"
			}
			return ""
		}
	}
	want, got = normalise("", want), normalise("", got)
	if status == http.StatusOK && reflect.DeepEqual(want, got) {
		return ""
	}
	return cmp.Diff(want, got)
}

func (p *player) decode(raw []byte) (v any) {
	if json.Unmarshal(raw, &v) != nil {
		return string(raw)
	}
	return v
}

func (p *player) bodyValue(body []byte, contentType string) any {
	s := strings.NewReplacer(p.k.Dir(), "{{WORKSPACE}}", token, "{{TOKEN}}").Replace(string(body))
	if strings.Contains(contentType, "json") {
		return p.decode([]byte(s))
	}
	return s
}

// learn pairs the made-up ids at the same place of two answers.
func (p *player) learn(recorded, ours []byte) {
	p.pair(p.decode(recorded), p.decode(ours))
}

func (p *player) pair(recorded, ours any) {
	switch a := recorded.(type) {
	case string:
		b, ok := ours.(string)
		if !ok {
			return
		}
		for _, pattern := range []*regexp.Regexp{madeUpID, historyTime, unixSeconds, snapshotID} {
			theirs, mine := pattern.FindAllString(a, -1), pattern.FindAllString(b, -1)
			for i, id := range theirs {
				if _, known := p.ids[id]; !known && len(theirs) == len(mine) {
					p.ids[id] = mine[i]
				}
			}
		}
	case []any:
		b, _ := ours.([]any)
		for i := range a {
			if i < len(b) {
				p.pair(a[i], b[i])
			}
		}
	case map[string]any:
		b, _ := ours.(map[string]any)
		for key, v := range a {
			if o, ok := b[key]; ok {
				p.pair(v, o)
			}
		}
	}
}
