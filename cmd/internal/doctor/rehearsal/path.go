package rehearsal

import (
	"bufio"
	"bytes"
	"context"
	"net/http"
	"strings"
	"time"

	"siyuan-broker/cmd/internal/doctor"
)

// headers finds out which headers of requests and answers get lost on the way:
// each is sent so that the broker answers otherwise than without it.
func (d *Doctor) headers(ctx context.Context, g grant) doctor.Finding {
	old := d.talk(g, "2025-11-25")
	if err := in("first message with the token", old.hello(ctx)); err != nil {
		return finding(err) // Authorization, Mcp-Session-Id of answers
	}
	var lost []string
	for _, x := range []struct {
		header string
		passes func() (bool, error)
	}{
		{"Mcp-Session-Id", func() (bool, error) { return d.status(ctx, old, "tools/list", "", http.StatusOK, nil) }},
		{"Mcp-Protocol-Version", func() (bool, error) {
			return d.status(ctx, old, "tools/list", "", http.StatusBadRequest, http.Header{"Mcp-Protocol-Version": {"1999-01-01"}})
		}},
		{"Last-Event-ID", func() (bool, error) { return d.resumes(ctx, old) }},
		{"Mcp-Method", func() (bool, error) { return d.status(ctx, d.talk(g, modern), "tools/list", "", http.StatusOK, nil) }},
		{"Mcp-Name", func() (bool, error) { return d.names(ctx, g) }},
		{"WWW-Authenticate (of answers)", func() (bool, error) { return d.challenged(ctx) }},
	} {
		ok, err := x.passes()
		if err != nil {
			return finding(in(x.header, err))
		}
		if !ok {
			lost = append(lost, x.header)
		}
	}
	if err := in("end of the session", old.goodbye(ctx)); err != nil && len(lost) == 0 {
		return finding(err)
	}
	if len(lost) > 0 {
		return doctor.Bad("let the proxy in front pass them; agents need them", "something in front strips or changes: %s", strings.Join(lost, ", "))
	}
	return doctor.Good("Authorization, Mcp-*, Last-Event-ID and WWW-Authenticate come through")
}

// status reports whether a message with changed headers is answered with a
// status.
func (d *Doctor) status(ctx context.Context, t *talk, method, name string, want int, change http.Header) (bool, error) {
	h := t.header(method, name)
	for k, v := range change {
		h[k] = v
	}
	params := map[string]any{}
	if method == "tools/call" {
		params = map[string]any{"name": name, "arguments": map[string]any{"action": "help"}}
	}
	a, err := say(ctx, d.Network.Client(), http.MethodPost, t.url, t.message(method, params), h)
	return a.status == want, err
}

// resumes reports whether Last-Event-ID arrives: the broker refuses one that it
// did not give, and without any it opens a stream, which is not waited for.
func (d *Doctor) resumes(ctx context.Context, t *talk) (bool, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, t.url, nil)
	if err != nil {
		return false, err
	}
	req.Header = t.header("", "")
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("Last-Event-ID", "doctor")
	arrived := make(chan int, 1)
	failed := make(chan error, 1)
	go func() { // ends with the context; both channels have room
		resp, err := d.Network.Client().Do(req)
		if err != nil {
			failed <- err
			return
		}
		_ = resp.Body.Close()
		arrived <- resp.StatusCode
	}()
	select {
	case status := <-arrived:
		return status == http.StatusBadRequest, nil
	case err := <-failed:
		return false, err
	case <-time.After(prompt): // it opened a stream, and something holds back its beginning
		cancel()
		select {
		case <-arrived:
		case <-failed:
		}
		return false, nil
	}
}

// names reports whether Mcp-Name arrives. It is asked for by tools/call.
func (d *Doctor) names(ctx context.Context, g grant) (bool, error) {
	t := d.talk(g, "2025-11-25")
	if err := t.hello(ctx); err != nil {
		return false, err
	}
	list, err := t.list(ctx)
	if err != nil {
		return false, err
	}
	if err := t.goodbye(ctx); err != nil {
		return false, err
	}
	return d.status(ctx, d.talk(g, modern), "tools/call", list[0], http.StatusOK, nil)
}

// challenged reports whether the 401 for a token that is none keeps its reason.
func (d *Doctor) challenged(ctx context.Context) (bool, error) {
	t := d.talk(grant{Access: "none"}, modern)
	a, err := t.post(ctx, "tools/list", "", nil)
	return a.status == http.StatusUnauthorized && strings.Contains(a.header.Get("WWW-Authenticate"), `error="invalid_token"`), err
}

// prompt is how soon the first event of a stream has to be there: the broker
// sends it at once.
const prompt = 6 * time.Second

// piece is something that happened on a stream.
type piece struct {
	at    time.Time
	ended string // how the stream ended; empty: it goes on
}

// stream opens one on which nothing happens, and watches what arrives when: an
// event at once, then signs of life, and no end.
func (d *Doctor) stream(ctx context.Context, g grant) doctor.Finding {
	ctx, cancel := context.WithCancel(ctx)
	pieces := make(chan piece, 64) // more than arrive in the time; the reader waits for room
	done := make(chan struct{})
	go func() { defer close(done); d.listen(ctx, g, pieces) }()
	defer func() { cancel(); <-done }()

	const letThrough = "the proxy in front must not buffer /mcp: nginx: proxy_buffering off (or do not ignore X-Accel-Buffering); Apache: flushpackets=on; others have a setting for server-sent events"
	began := time.Now()
	n := 0
	last, longest := began, time.Duration(0)
	soon := min(prompt, d.silence())
	first := time.After(soon)
	over := time.After(d.silence())
	for {
		select {
		case p := <-pieces:
			longest, last = max(longest, p.at.Sub(last)), p.at
			since := p.at.Sub(began).Round(100 * time.Millisecond)
			switch {
			case p.ended != "" && n == 0:
				return doctor.Bad("if nothing came before the end, something in front buffers /mcp or gives up on silent answers: proxy_buffering, proxy_read_timeout", "a stream ended after %s without anything: %s", since, p.ended)
			case p.ended != "":
				return doctor.Bad("let the proxy in front wait longer than 15 s for the next byte of a stream (nginx: proxy_read_timeout)", "a stream was cut after %s: %s", since, p.ended)
			}
			n++
		case <-first:
			if n == 0 {
				return doctor.Bad(letThrough, "a stream's first event, which the broker sends at once, has not arrived after %s: something in front holds it back", soon)
			}
		case <-over:
			if n < 2 { // also where both times are one
				return doctor.Bad(letThrough, "of a stream %d pieces have arrived in %s, and no sign of life: something in front holds small pieces back", n, d.silence())
			}
			return doctor.Good("%d pieces arrived one by one within %s, %s apart at most, and the stream goes on", n, d.silence(), longest.Round(100*time.Millisecond))
		case <-ctx.Done():
			return finding(ctx.Err())
		}
	}
}

// listen opens a stream and tells what arrives.
func (d *Doctor) listen(ctx context.Context, g grant, pieces chan<- piece) {
	tell := func(ended string) {
		select {
		case pieces <- piece{time.Now(), ended}:
		case <-ctx.Done():
		}
	}
	t := d.talk(g, modern)
	const method = "subscriptions/listen"
	body := t.message(method, map[string]any{"notifications": map[string]any{"toolsListChanged": true}})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.url, bytes.NewReader(body))
	if err != nil {
		tell(err.Error())
		return
	}
	req.Header = t.header(method, "")
	resp, err := d.Network.Client().Do(req)
	if err != nil {
		tell(doctor.Unreachable(err).Found)
		return
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		tell(resp.Status + through(resp.Header))
		return
	}
	lines := bufio.NewScanner(resp.Body)
	whole := false // a piece ends with an empty line
	for lines.Scan() {
		if text := lines.Text(); text != "" {
			whole = true
		} else if whole {
			tell("")
			whole = false
		}
	}
	tell("the connection was closed" + through(resp.Header))
}

// through names what is in between, where it names itself.
func through(h http.Header) string {
	if name := (answer{header: h}).proxy(); name != "" {
		return ", by way of " + name
	}
	return ""
}
