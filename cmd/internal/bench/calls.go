package main

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// The subjects of a run, as the table names them.
const (
	floor       = "echo floor"
	direct      = "SDK server"             // beside the kernel, nothing in between
	throughFRP  = "frp + SDK server"       // the opponent
	frpLegacy   = "frp + SDK, sessions"    // the same in the older era
	frpLane     = "frp + our lane"         // our endpoint beside the kernel
	ours        = "broker"                 // released broker and connector, hot lane
	oursLegacy  = "broker, sessions"       // the same in the older era
	sdkLane     = "broker, SDK lane"       // hot_lane off
	sdkLegacy   = "broker, SDK, sessions"  // hot_lane off in the older era
	oneCall     = "broker, 1 kernel call"  // released broker, a home that makes one call to the kernel
	kernelAlone = "SiYuan itself"          // its HTTP API
	warm        = 150 * time.Millisecond   // before each measurement
	large       = 1 << 20                  // where 64 connections would measure memory
	notebookID  = "20240101090000-work001" // of calls that only the one-call home answers
)

var (
	sizes       = []int{200, 16 << 10, large}
	connections = []int{1, 16, 64}
)

// subject is one thing to measure.
type subject struct {
	name string
	load func(size int) *target
	pids map[string]int
	// only says whether it is measured at this size.
	only func(size int) bool
}

// cell is a place in the table.
type cell struct {
	size, connections int
	name              string
}

// results are the samples of every cell, a round each.
type results map[cell][]sample

func (r results) at(size, connections int, name string) []sample {
	return r[cell{size, connections, name}]
}

// silent names the subjects that did not answer once in some place of the table:
// what was measured there is nothing.
func (r results) silent() error {
	var names []string
	for at, samples := range r {
		if !slices.ContainsFunc(samples, func(s sample) bool { return s.calls > 0 }) {
			names = append(names, fmt.Sprintf("%s (%d bytes, %d connections)", at.name, at.size, at.connections))
		}
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	return fmt.Errorf("no call succeeded of %s", strings.Join(names, ", "))
}

// measure runs the subjects in turn, round after round.
func (b *bench) measure(ctx context.Context, subjects []subject, sizes, connections []int) results {
	r, told := results{}, map[string]bool{}
	for round := range b.rounds {
		for _, size := range sizes {
			for _, n := range connections {
				if size == large && n > 16 {
					continue
				}
				for _, s := range subjects {
					if ctx.Err() != nil || s.only != nil && !s.only(size) {
						continue
					}
					at := cell{size, n, s.name}
					got := load(ctx, s.load(size), n, warm, b.cell, s.pids)
					if got.failure != nil && !told[s.name] {
						told[s.name] = true
						b.say("%s, %d bytes, %d connections: %d failed, the first with: %v", s.name, size, n, got.failed, got.failure)
					}
					r[at] = append(r[at], got)
				}
			}
		}
		b.say("round %d of %d is over", round+1, b.rounds)
	}
	return r
}

// argumentsOf is a call of about the given size, which comes back.
func argumentsOf(size int) string {
	const frame = `{"action":"create","notebook":"` + notebookID + `","path":"/bench","markdown":""}`
	return strings.TrimSuffix(frame, `"}`) + strings.Repeat("x", max(0, size-len(frame))) + `"}`
}

func small(size int) bool { return size == 200 }

// measureCalls starts everything a call goes through and measures it.
func (b *bench) measureCalls(ctx context.Context) (results, error) {
	const kernelToken = "kernel-token"
	kernel := freeAddress()
	if _, err := b.role(ctx, "kernel", "-listen", kernel, "-token", kernelToken); err != nil {
		return nil, err
	}
	subjects, err := b.opponents(ctx, "http://"+kernel+echoPath, "", "document", argumentsOf)
	if err != nil {
		return nil, err
	}
	hot, err := b.startBroker(ctx, "broker", true)
	if err != nil {
		return nil, err
	}
	slow, err := b.startBroker(ctx, "broker-sdk-lane", false)
	if err != nil {
		return nil, err
	}
	hotHome, err := hot.releasedHome(ctx, "hot", "http://"+kernel, kernelToken)
	if err != nil {
		return nil, err
	}
	slowHome, err := slow.releasedHome(ctx, "slow", "http://"+kernel, kernelToken)
	if err != nil {
		return nil, err
	}
	single, err := hot.oneCallHome(ctx, "http://"+kernel+echoPath)
	if err != nil {
		return nil, err
	}
	_, id, err := hot.document(ctx, hotHome, "Two hundred bytes or so of Markdown, as a paragraph has them, with a few words in **bold** and one [link](https://example.org/).")
	if err != nil {
		return nil, err
	}
	if err := b.freeze(ctx, "http://"+kernel); err != nil {
		return nil, err
	}
	read := fmt.Sprintf(`{"action":"get_kramdown","id":%q}`, id)
	through := func(n *testedBroker, h *home, m mode) func(int) *target {
		return func(int) *target { return n.target(h, m, "block", read) }
	}
	pids := func(n *testedBroker, h *home) map[string]int {
		return map[string]int{"broker": n.process.pid(), "connector": h.process.pid()}
	}
	subjects = append(subjects,
		subject{ours, through(hot, hotHome, modern), pids(hot, hotHome), small},
		subject{oursLegacy, through(hot, hotHome, legacy), pids(hot, hotHome), small},
		subject{sdkLane, through(slow, slowHome, modern), pids(slow, slowHome), small},
		subject{sdkLegacy, through(slow, slowHome, legacy), pids(slow, slowHome), small},
		subject{oneCall, func(size int) *target { return hot.target(single, modern, "document", argumentsOf(size)) }, pids(hot, single), nil},
	)
	b.say("everything is up; measuring whole calls")
	r := b.measure(ctx, subjects, sizes, connections)
	return r, cmp.Or(ctx.Err(), r.silent())
}

// freeze makes the kernel answer from memory.
func (b *bench) freeze(ctx context.Context, kernel string) error {
	w, err := newWorker(ctx, &target{url: kernel + freezePath, mode: plain, arguments: "{}"})
	if err != nil {
		return err
	}
	defer w.close()
	_, err = w.call(ctx)
	return err
}

// opponents starts the floor and what calls are compared with. One call of a
// tool is one call to the kernel's URL.
func (b *bench) opponents(ctx context.Context, kernel, authorization, tool string, arguments func(int) string) ([]subject, error) {
	floorAt, sdkAt, laneAt := freeAddress(), freeAddress(), freeAddress()
	sdkPublic, lanePublic := freeAddress(), freeAddress()
	to := func(address, path string, m mode) func(int) *target {
		return func(size int) *target {
			return &target{url: "https://" + address + path, mode: m, tool: tool, arguments: arguments(size), roots: b.roots, token: "any"}
		}
	}
	echo, err := b.role(ctx, "echo", "-listen", floorAt, "-tls", b.certificate.path)
	if err != nil {
		return nil, err
	}
	common := []string{"-tls", b.certificate.path, "-kernel", kernel, "-authorization", authorization}
	sdk, err := b.role(ctx, "sdk", append(common, "-listen", sdkAt)...)
	if err != nil {
		return nil, err
	}
	subjects := []subject{
		{floor, to(floorAt, "/", plain), map[string]int{"echo": echo.pid()}, nil},
		{direct, to(sdkAt, "/mcp", modern), map[string]int{"server": sdk.pid()}, nil},
	}
	if b.frps == "" {
		return subjects, nil
	}
	lane, err := b.role(ctx, "lane", append(common, "-listen", laneAt, "-public", "https://"+laneAt+",https://"+lanePublic)...)
	if err != nil {
		return nil, err
	}
	f, err := b.startFRP(ctx, map[string]string{sdkAt: sdkPublic, laneAt: lanePublic})
	if err != nil {
		return nil, err
	}
	pids := func(server *process) map[string]int {
		return map[string]int{"frps": f.server.pid(), "frpc": f.client.pid(), "server": server.pid()}
	}
	return append(subjects,
		subject{throughFRP, to(sdkPublic, "/mcp", modern), pids(sdk), nil},
		subject{frpLegacy, to(sdkPublic, "/legacy", legacy), pids(sdk), small},
		subject{frpLane, to(lanePublic, "/mcp", modern), pids(lane), nil},
	), nil
}

// measureSiYuan compares whole calls into a real SiYuan. It makes a notebook of
// its own there and removes it.
func (b *bench) measureSiYuan(ctx context.Context) (_ results, err error) {
	n, err := b.startBroker(ctx, "broker-siyuan", true)
	if err != nil {
		return nil, err
	}
	h, err := n.releasedHome(ctx, "siyuan", b.siyuanURL, b.siyuan)
	if err != nil {
		return nil, err
	}
	notebook, id, err := n.document(ctx, h, "A paragraph in a real SiYuan, of which the text is read again and again.")
	if notebook != "" {
		defer func() {
			if e := b.kernelPost(context.WithoutCancel(ctx), "/api/notebook/removeNotebook", fmt.Sprintf(`{"notebook":%q}`, notebook)); err == nil {
				err = e
			}
		}()
	}
	if err != nil {
		return nil, err
	}
	const path = "/api/block/getBlockKramdown"
	read := fmt.Sprintf(`{"action":"get_kramdown","id":%q}`, id)
	same := func(int) string { return read }
	subjects, err := b.opponents(ctx, b.siyuanURL+path, "Token "+b.siyuan, "block", same)
	if err != nil {
		return nil, err
	}
	subjects = slices.DeleteFunc(subjects, func(s subject) bool { return s.name == floor || s.name == frpLegacy })
	subjects = append(subjects,
		subject{kernelAlone, func(int) *target {
			return &target{url: b.siyuanURL + path, mode: plain, arguments: read, token: b.siyuan, scheme: "Token"}
		}, nil, nil},
		subject{ours, func(int) *target { return n.target(h, modern, "block", read) },
			map[string]int{"broker": n.process.pid(), "connector": h.process.pid()}, nil})
	b.say("measuring whole calls into SiYuan")
	r := b.measure(ctx, subjects, []int{len(read)}, []int{1, 16})
	return r, cmp.Or(ctx.Err(), r.silent())
}

func (b *bench) kernelPost(ctx context.Context, path, body string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, b.siyuanURL+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Token "+b.siyuan)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}
