package samplekernel_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"siyuan-broker/connector/siyuan/samplekernel"
)

var (
	update  = flag.Bool("update", false, "write CONFORMANCE.md anew")
	source  = flag.String("recordings", filepath.Join("testdata", "recordings"), "folder of recordings to compare with")
	details = flag.String("details", "", "print what differs in recordings whose area/name contains this")
)

// recording is one request to a real kernel and its answer.
type recording struct {
	Name    string `json:"name"`
	Request struct {
		Method  string          `json:"method"`
		Path    string          `json:"path"`
		Body    json.RawMessage `json:"body"`
		Headers map[string]any  `json:"headers"`
	} `json:"request"`
	Response struct {
		Status      int             `json:"status"`
		ContentType string          `json:"content_type"`
		Body        json.RawMessage `json:"body"`
	} `json:"response"`
}

func (r recording) endpoint() string {
	p, _, _ := strings.Cut(r.Request.Path, "?")
	return p
}

func loadRecordings(t *testing.T, area string) (list []recording) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(*source, area+".json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		t.Fatalf("%s: %v", area, err)
	}
	return list
}

// player sends recordings to a kernel. It learns which id the kernel made up
// where the real one made up another, and asks with its own ids afterwards.
type player struct {
	*rig
	ids map[string]string // recorded id: ours
}

// skipped is true for requests an in-process handler cannot be sent.
func skipped(r recording) bool {
	var body struct {
		Content string `json:"content"`
	}
	_ = json.Unmarshal(r.Request.Body, &body)
	return strings.HasPrefix(body.Content, "(the letter a") || strings.HasPrefix(r.Request.Path, "/mcp")
}

func (p *player) substitute(s string) string {
	pairs := []string{"{{TOKEN}}", token, "{{WORKSPACE}}", p.k.Dir(), "{{AUTHCODE}}", "test123"}
	for recorded, ours := range p.ids {
		pairs = append(pairs, recorded, ours)
	}
	return strings.NewReplacer(pairs...).Replace(s)
}

// send plays one request and returns status, content type and body.
func (p *player) send(r recording) (int, string, []byte) {
	p.t.Helper()
	body, header := p.body(r)
	for name, v := range r.Request.Headers {
		header.Del(name)
		if s, set := v.(string); set {
			header.Set(name, p.substitute(s))
		} else {
			header[http.CanonicalHeaderKey(name)] = nil
		}
	}
	w := p.raw(r.Request.Method, p.substitute(r.Request.Path), body, header)
	return w.Code, w.Header().Get("Content-Type"), w.Body.Bytes()
}

func (p *player) body(r recording) ([]byte, http.Header) {
	p.t.Helper()
	header := http.Header{"Content-Type": {"application/json"}}
	var special struct {
		Raw       *string                    `json:"$raw"`
		Multipart map[string]json.RawMessage `json:"$multipart"`
	}
	_ = json.Unmarshal(r.Request.Body, &special)
	switch {
	case special.Raw != nil:
		return []byte(p.substitute(*special.Raw)), header
	case special.Multipart != nil:
		body, contentType := p.multipart(special.Multipart)
		header.Set("Content-Type", contentType)
		return body, header
	case string(r.Request.Body) == "null":
		return nil, header
	}
	return []byte(p.substitute(string(r.Request.Body))), header
}

func (p *player) multipart(fields map[string]json.RawMessage) ([]byte, string) {
	p.t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for name, raw := range fields {
		var file struct {
			Name string `json:"$file"`
			Data string `json:"$base64"`
		}
		var s string
		if json.Unmarshal(raw, &s) == nil {
			w.WriteField(name, s)
			continue
		}
		if err := json.Unmarshal(raw, &file); err != nil {
			p.t.Fatal(err)
		}
		part, err := w.CreateFormFile(name, file.Name)
		if err != nil {
			p.t.Fatal(err)
		}
		data, err := base64.StdEncoding.DecodeString(file.Data)
		if err != nil {
			p.t.Fatal(err)
		}
		part.Write(data)
	}
	w.Close()
	return b.Bytes(), w.FormDataContentType()
}

// build makes the recorded workspace. Opening a notebook indexes in the
// background; the recorder waited for it once and after everything else.
func (p *player) build(t *testing.T, area string) {
	t.Helper()
	for _, r := range loadRecordings(t, area) {
		status, _, body := p.send(r)
		if status != http.StatusOK && implements(samplekernel.Endpoints(), r) {
			t.Fatalf("build %s: status %d: %s", r.Name, status, body)
		}
		p.learn(r.Response.Body, body)
		if strings.HasPrefix(r.Name, "people rows") {
			p.flush() // the recorder's kernel happened to index here: the rows of Tasks are not in its content
		}
		if strings.HasPrefix(r.Name, "open notebook") || strings.HasPrefix(r.Name, "close") {
			p.clock.advance(samplekernel.DefaultMountLag)
		}
		p.clock.advance(time.Millisecond)
	}
	p.clock.advance(time.Minute)
	p.call("/api/sqlite/flushTransaction", obj{})
}

// fresh makes the document the recorder made between recordings to write to.
func (p *player) fresh(n int) {
	id := func(i int) string { return fmt.Sprintf("202401071%05d-fresh%02d", n, i) }
	md := fmt.Sprintf("# H\n{: id=%q}\n\npara\n{: id=%q custom-a=\"1\" name=\"n%d\" alias=\"al\" memo=\"me\" bookmark=\"bk\"}\n\n- {: id=%q custom-li=\"1\"}one\n  {: id=%q custom-p=\"1\"}\n- {: id=%q}two\n  {: id=%q}\n{: id=%q custom-l=\"1\"}\n\n- {: id=%q}[ ] t\n",
		id(0), id(1), n, id(2), id(3), id(4), id(5), id(6), id(7))
	p.call("/api/filetree/createDoc", obj{"notebook": labBook, "path": fmt.Sprintf("/202401071%05d-freshdc.sy", n), "title": fmt.Sprintf("Fresh %d", n), "md": md})
}

const labBook = "20240101090400-labbook"

func (p *player) flush() { p.call("/api/sqlite/flushTransaction", obj{}) }

// between is what the recorder did, unrecorded, before a recording.
func between() map[string]func(*player) {
	fresh := func(n int) func(*player) { return func(p *player) { p.fresh(n) } }
	flush := (*player).flush
	later := func(p *player) { p.clock.advance(5 * time.Second) }
	return map[string]func(*player){
		"search/the embed block's own row now holds text of another notebook": flush,
		"repo/createSnapshot: second": func(p *player) {
			p.call("/api/block/appendBlock", obj{"dataType": "markdown", "data": "between snapshots", "parentID": "20240106090200-labdoc3"})
			p.flush()
		},
		"search/findReplace: no replaceTypes replaces nothing":    func(p *player) { p.fresh(6); p.flush() },
		"attr/batchSetBlockAttrs":                                 flush, // time passed: the earlier writes were in the index
		"attr/sql after flush":                                    flush,
		"block/appendBlock":                                       fresh(1),
		"block/updateBlock: before":                               fresh(2),
		"block/updateBlock: list item with two items":             fresh(3),
		"block/batchUpdateBlock":                                  fresh(4),
		"block/deleteBlock: paragraph":                            fresh(5),
		"block/deleteBlock: exists after flushTransaction":        flush,
		"block/deleteBlock: document after":                       flush,
		"block/deleteBlock: document exists after":                flush,
		"block/dangling reference: append":                        fresh(8),
		"filetree/createDocWithMd: same, after flush":             flush,
		"filetree/removeDocByID: a block id removes its document": fresh(7),
		"filetree/titles after these":                             flush,
		"filetree/createDoc":                                      (*player).removeMalformed,
		"tag/renameTag":                                           flush,
		"tag/getTag after rename":                                 flush,
		"tag/removeTag":                                           flush,
		"tag/paragraph after removeTag":                           flush,
		"bookmark/renameBookmark":                                 flush,
		"bookmark/getBookmark after rename":                       flush,
		"av/addAttributeViewBlocks: bound": func(p *player) {
			for _, key := range []string{"not-an-id", "20240106130190-labkeyy"} {
				p.call("/api/av/removeAttributeViewKey", obj{"avID": "20240106130000-labavid", "keyID": key})
			}
		},
		"notebook/openNotebook: missing": func(p *player) {
			p.call("/api/notebook/removeNotebook", obj{"notebook": "20240199000001-ghostbk"})
		},
		"notebook/opened and flushed: sql, notebook still being indexed": flush,
		"notebook/opened 5 s ago: sql":                                   later,
		"notebook/closed and flushed: sql":                               later,
		"notebook/closed 4 s ago: sql":                                   later,
	}
}

// removeMalformed takes away the document with an id that is none.
func (p *player) removeMalformed() {
	p.call("/api/filetree/removeDoc", obj{"notebook": labBook, "path": "/not-an-id.sy"})
}

// phase is a stretch of an area: the recorder first read everything, then wrote.
type phase struct {
	area       string
	from, upTo string // recording names, empty for the ends
}

func phases() []phase {
	firstWrite := map[string]string{
		"search": "findReplace: no replaceTypes replaces nothing", "tag": "renameTag", "bookmark": "renameBookmark", "attr": "setBlockAttrs",
		"block": "appendBlock", "filetree": "createDocWithMd", "av": "create: insert database block", "file": "putFile: new file, parents made",
	}
	order := []string{"errors", "query", "search", "ref", "outline", "graph", "tag", "bookmark", "attr", "block", "filetree", "av", "riff", "file", "export",
		"template", "convert", "system", "notification", "asset", "history", "repo", "notebook", "official_mcp"}
	onlyWrites := []string{"riff", "asset", "history", "repo", "notebook", "official_mcp"}
	var read, write []phase
	for _, area := range order {
		w, mixed := firstWrite[area]
		switch {
		case slices.Contains(onlyWrites, area):
			write = append(write, phase{area: area})
		case mixed:
			read = append(read, phase{area: area, upTo: w})
			write = append(write, phase{area: area, from: w})
		default:
			read = append(read, phase{area: area})
		}
	}
	return append(append(read, phase{area: "build_lab"}), write...)
}

type result struct {
	area, name, endpoint string
	implemented          bool
	difference           string
}

func (r result) key() string { return r.area + "/" + r.name }

// replay plays everything and compares.
func replay(t *testing.T) (results []result) {
	p := &player{rig: newRig(t, samplekernel.Options{AuthCode: "test123"}), ids: map[string]string{}}
	p.build(t, "build")
	served := samplekernel.Endpoints()
	before := between()
	for _, ph := range phases() {
		if ph.area == "build_lab" {
			p.build(t, "build_lab")
			continue
		}
		p.clock.advance(10 * time.Second)
		active := ph.from == ""
		for _, r := range loadRecordings(t, ph.area) {
			if active = active || r.Name == ph.from; ph.upTo != "" && r.Name == ph.upTo {
				break
			}
			if !active || skipped(r) {
				continue
			}
			if step := before[ph.area+"/"+r.Name]; step != nil {
				step(p)
			}
			res := result{area: ph.area, name: r.Name, endpoint: r.endpoint(), implemented: implements(served, r)}
			if res.implemented {
				res.difference = p.compare(r)
			}
			results = append(results, res)
		}
	}
	return results
}

// implements also holds for what is no endpoint at all, such as unknown paths.
func implements(served []string, r recording) bool {
	return slices.Contains(served, r.endpoint()) || r.Response.Status != http.StatusOK || strings.HasPrefix(r.endpoint(), "/assets/")
}

func TestAnswersAreThoseOfARealKernel(t *testing.T) {
	results := replay(t)
	known := knownDifferences()
	tools := toolEndpoints()
	seen := map[string]bool{}
	for _, r := range results {
		reason, isKnown := known[r.key()]
		seen[r.key()] = seen[r.key()] || r.difference != ""
		if *details != "" && strings.Contains(r.key(), *details) && r.difference != "" {
			t.Logf("%s (%s)\n%s\n%s", r.key(), r.endpoint, reason, r.difference)
		}
		switch {
		case slices.Contains(tools, r.endpoint) && !r.implemented:
			t.Errorf("%s is used by tools and not implemented", r.endpoint)
		case slices.Contains(tools, r.endpoint) && r.difference != "" && !isKnown:
			t.Errorf("%s (%s) differs:\n%s", r.key(), r.endpoint, r.difference)
		}
	}
	for key := range known {
		if !seen[key] {
			t.Errorf("known difference %q does not differ (any more): take it out of the list", key)
		}
	}
	report := conformanceReport(results, known)
	t.Log(strings.SplitN(report, "\n\n", 3)[1])
	checkReport(t, report)
}

func checkReport(t *testing.T, report string) {
	t.Helper()
	if *update {
		if err := os.WriteFile("CONFORMANCE.md", []byte(report), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile("CONFORMANCE.md")
	if err != nil || string(have) != report {
		t.Errorf("CONFORMANCE.md is not what this run says; run with -update (%v)", err)
	}
}

func conformanceReport(results []result, known map[string]string) string {
	type counts struct{ matched, known, differs, missing int }
	per := map[string]*counts{}
	var total counts
	for _, r := range results {
		c := per[r.endpoint]
		if c == nil {
			c = &counts{}
			per[r.endpoint] = c
		}
		for _, c := range []*counts{c, &total} {
			_, isKnown := known[r.key()]
			switch {
			case !r.implemented:
				c.missing++
			case r.difference == "":
				c.matched++
			case isKnown:
				c.known++
			default:
				c.differs++
			}
		}
	}
	var b strings.Builder
	b.WriteString("# How close the sample kernel is to SiYuan " + samplekernel.Version + "\n\n")
	fmt.Fprintf(&b, "Of %d recorded answers %d match, %d differ for a known reason, %d differ otherwise, %d belong to endpoints that are not implemented.\n\n",
		len(results), total.matched, total.known, total.differs, total.missing)
	b.WriteString("Written by `go test -run RealKernel -update`. What counts as equal is described in normalise_test.go. Endpoints marked * are used by tools and may differ only for a known reason.\n\n")
	b.WriteString("| endpoint | match | known | differ | not implemented |\n| --- | --- | --- | --- | --- |\n")
	names := make([]string, 0, len(per))
	for name := range per {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		c, star := per[name], ""
		if slices.Contains(toolEndpoints(), name) {
			star = " *"
		}
		fmt.Fprintf(&b, "| %s%s | %d | %d | %d | %d |\n", name, star, c.matched, c.known, c.differs, c.missing)
	}
	b.WriteString("\n## Known differences\n\n")
	keys := make([]string, 0, len(known))
	for key := range known {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	for _, key := range keys {
		fmt.Fprintf(&b, "- %s: %s\n", key, known[key])
	}
	b.WriteString("\n## Other differences\n\n")
	for _, r := range results {
		if _, isKnown := known[r.key()]; r.difference != "" && !isKnown {
			fmt.Fprintf(&b, "- %s (%s)\n", r.key(), r.endpoint)
		}
	}
	return b.String()
}
