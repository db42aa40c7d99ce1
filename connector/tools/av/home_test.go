package av_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/guard/guardtest"
	"siyuan-broker/connector/policy"
	"siyuan-broker/connector/siyuan"
	"siyuan-broker/connector/tools"
	"siyuan-broker/connector/tools/av"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

// desk is an executor in front of a home: a document with two paragraphs to bind
// rows to.
type desk struct {
	exec   *tools.Executor
	client *siyuan.Client
	grant  *contract.Grant
	doc    string
	paras  []string
}

// sampleDesk may do everything in Work, read in Diary, and knows nothing of
// Private.
func sampleDesk(t testing.TB) (*desk, *guardtest.Home) {
	t.Helper()
	h := guardtest.New(t)
	d := &desk{client: h.Client, doc: guardtest.Alpha, paras: []string{guardtest.Intro, guardtest.Heading}, grant: guardtest.Grant(map[string]contract.Level{
		guardtest.Work: contract.ReadWriteDelete, guardtest.Diary: contract.Read,
	})}
	d.start(t, h.Guard)
	return d, h
}

// liveDesk is a notebook of its own in a real SiYuan.
func liveDesk(t testing.TB) *desk {
	t.Helper()
	url, token := os.Getenv("SIYUAN_API_URL"), os.Getenv("SIYUAN_TOKEN")
	if url == "" || token == "" {
		t.Skip("needs SIYUAN_API_URL and SIYUAN_TOKEN")
	}
	ctx := context.Background()
	client, err := siyuan.New(siyuan.Config{BaseURL: url, Token: siyuan.NewToken(token)})
	check(t, err)
	t.Cleanup(client.Close)
	g := guard.New(client.Reader(), client.Writer(), guard.Options{})
	t.Cleanup(func() { check(t, g.Close()) })
	nb, err := client.Writer().CreateNotebook(ctx, fmt.Sprintf("av %d", time.Now().UnixNano()))
	check(t, err)
	t.Cleanup(func() { check(t, client.Writer().RemoveNotebook(ctx, nb.ID)) })
	doc, err := client.Writer().CreateDoc(ctx, siyuan.NewDoc{Notebook: nb.ID, HPath: "/Tasks", Markdown: "first paragraph\n\nsecond paragraph"})
	check(t, err)
	children, err := client.Reader().ChildBlocks(ctx, doc)
	check(t, err)
	d := &desk{client: client, doc: string(doc), grant: &contract.Grant{V: contract.GrantVersion, Exp: 1 << 40, Levels: map[string]contract.Level{string(nb.ID): contract.ReadWriteDelete}}}
	for _, c := range children {
		d.paras = append(d.paras, string(c.ID))
	}
	d.start(t, g)
	return d
}

func (d *desk) start(t testing.TB, g *guard.Guard) {
	t.Helper()
	var err error
	d.exec, err = tools.New(tools.Config{Guard: g, Policy: policy.Fixed(contract.ReadWriteDelete), Catalogue: catalogue.AtHome()}, av.Bindings()...)
	check(t, err)
}

func (d *desk) call(action string, args map[string]any) contract.Result {
	raw, err := json.Marshal(args)
	if err != nil {
		panic(err) // a test's own arguments
	}
	return d.exec.Handle(context.Background(), contract.Call{Tool: "av", Action: action, RequestID: "req-1", Grant: d.grant, Args: raw}, nil)
}

// args are arguments of a call.
type args = map[string]any

// ok runs a call that must succeed and gives its answer.
func ok[T any](t testing.TB, d *desk, action string, a args) (out T) {
	t.Helper()
	r := d.call(action, a)
	if r.Err != nil {
		t.Fatalf("%s %v: %v", action, a, r.Err)
	}
	check(t, json.Unmarshal(r.Body, &out))
	return out
}

// fails runs a call that must fail with a code, and gives its error as text.
func fails(t testing.TB, d *desk, want contract.Code, action string, a args) string {
	t.Helper()
	r := d.call(action, a)
	if r.Err == nil || contract.CodeOf(r.Err) != want {
		t.Fatalf("%s %v: %v %s, want %s", action, a, r.Err, r.Body, want)
	}
	return string(r.Err.Body())
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
