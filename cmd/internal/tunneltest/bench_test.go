package tunneltest

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"siyuan-broker/broker/relay"
	"siyuan-broker/connector/tunnel"
	"siyuan-broker/contract"
)

// These benchmarks measure over a link of 100 Mbit/s and 40 ms. Run them with
// -benchtime 1x; `make bench` puts their metrics into its table.

const (
	benchRate = 100e6 / 8
	benchRTT  = 40 * time.Millisecond
)

// farHome is a home behind a link of the given rate.
func farHome(b *testing.B, rate float64, change func(*relay.Config)) *node {
	b.Helper()
	pub, key := keys(b)
	n := startNode(b, newDirectory(pub), nodeOptions{transport: "tls", rawOnly: true, change: change,
		far: func(addr string) string { return startWAN(b, addr, rate, benchRTT).ln.Addr().String() }})
	startHome(b, n.url, n.tls, key, grow, withStreams(copier))
	n.await(relay.SessionUp)
	return n
}

// smallCalls makes calls of 200 bytes one after the other and returns how long
// each took, in order of duration.
func smallCalls(b *testing.B, n *node, count int, until <-chan struct{}) []time.Duration {
	b.Helper()
	var took []time.Duration
	args := json.RawMessage(`"` + strings.Repeat("x", 200) + `"`)
	for i := 0; ; i++ {
		select {
		case <-until:
			slices.Sort(took)
			return took
		default:
		}
		if count > 0 && i == count {
			slices.Sort(took)
			return took
		}
		began := time.Now()
		if res := n.call(b.Context(), contract.Call{Args: args}, true); res.Err != nil {
			b.Fatal(res.Err)
		}
		took = append(took, time.Since(began))
	}
}

func quantile(d []time.Duration, q float64) float64 {
	return float64(d[min(len(d)-1, int(q*float64(len(d))))]) / float64(time.Millisecond)
}

// BenchmarkSmallCallsDuringATransfer is target 8: small calls, quiet and while
// 64 MiB go each way.
func BenchmarkSmallCallsDuringATransfer(b *testing.B) {
	for _, direction := range []string{"up", "down"} {
		b.Run(direction, func(b *testing.B) {
			n := farHome(b, benchRate, nil)
			smallCalls(b, n, 5, nil)
			for b.Loop() {
				quiet := smallCalls(b, n, 50, nil)
				const size = 64 << 20
				args, body := fmt.Sprintf(`{"send":%d}`, size), int64(0)
				if direction == "down" { // towards the home
					args, body = `{"sum":true}`, size
				}
				s, err := n.open(b.Context(), args, body)
				if err != nil {
					b.Fatal(err)
				}
				done := make(chan struct{})
				began := time.Now()
				go func() {
					defer close(done)
					if body > 0 {
						if _, err := io.Copy(s, &pattern{n: size}); err != nil {
							b.Error(err)
						}
						_ = s.CloseWrite()
					}
					if _, err := io.Copy(io.Discard, s); err != nil {
						b.Error(err)
					}
				}()
				busy := smallCalls(b, n, 0, done)
				b.ReportMetric(size/time.Since(began).Seconds()/1e6, "MB/s")
				_ = s.Close()
				for name, q := range map[string]float64{"p50": 0.5, "p99": 0.99} {
					b.ReportMetric(quantile(quiet, q), "quiet-"+name+"-ms")
					b.ReportMetric(quantile(busy, q), "busy-"+name+"-ms")
					b.ReportMetric(quantile(busy, q)/quantile(quiet, q), name+"-ratio")
				}
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkWindow is target 9: 16 MiB against a session without a bulk session,
// whose window is 256 KiB, and a result of 1 MiB in round trips.
func BenchmarkWindow(b *testing.B) {
	speed := func(b *testing.B, n *node) float64 {
		const size = 16 << 20
		began := time.Now()
		s, err := n.open(b.Context(), fmt.Sprintf(`{"send":%d}`, size), 0)
		if err != nil {
			b.Fatal(err)
		}
		defer s.Close()
		if copied, err := io.Copy(io.Discard, s); copied != size || err != nil {
			b.Fatal(copied, err)
		}
		return size / time.Since(began).Seconds() / 1e6
	}
	const wide = 1e9 // what the windows limit, not the line
	with := farHome(b, wide, nil)
	without := farHome(b, wide, func(c *relay.Config) { c.Timing.Bulk, c.Timing.BulkAgain = time.Nanosecond, time.Hour })
	speed(b, with) // opens it
	for b.Loop() {
		large, small := speed(b, with), speed(b, without)
		b.ReportMetric(large, "bulk-MB/s")
		b.ReportMetric(small, "256KiB-MB/s")
		b.ReportMetric(large/small, "speed-ratio")
		for name, args := range map[string]json.RawMessage{"result": json.RawMessage(`1048576`), "both-ways": json.RawMessage(`"` + strings.Repeat("x", 1<<20) + `"`)} {
			var took []time.Duration
			for range 15 {
				began := time.Now()
				if res := with.call(b.Context(), contract.Call{Args: args}, true); len(res.Body) < 1<<20 {
					b.Fatal(res.Err)
				}
				took = append(took, time.Since(began))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2])/float64(benchRTT), "1MiB-"+name+"-RTT")
		}
	}
	b.ReportMetric(0, "ns/op")
}

// grow answers a number with a text of that length, anything else with itself.
var grow = tunnel.HandlerFunc(func(_ context.Context, c contract.Call, _ func(contract.Progress)) contract.Result {
	var size int
	if json.Unmarshal(c.Args, &size) == nil {
		return contract.Result{Body: json.RawMessage(`"` + strings.Repeat("x", size) + `"`)}
	}
	return contract.Result{Body: c.Args}
})

// BenchmarkSixteenCallers is the hop of target 7.
func BenchmarkSixteenCallers(b *testing.B) {
	n, broker, connector := counted(b, echo)
	args := json.RawMessage(`"` + strings.Repeat("x", 200) + `"`)
	together(b, n, 16, 20, args)
	b0, c0, calls := broker.Load(), connector.Load(), 0
	b.ReportAllocs()
	for b.Loop() {
		together(b, n, 16, 100, args)
		calls += 1600
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(calls), "ns/call")
	b.ReportMetric(float64(broker.Load()-b0)/float64(calls), "broker-writes/call")
	b.ReportMetric(float64(connector.Load()-c0)/float64(calls), "connector-writes/call")
}

// BenchmarkIdlePairs bounds the memory of target 10 from above: what an idle
// connector costs at both ends together, which are in this process.
func BenchmarkIdlePairs(b *testing.B) {
	for _, transport := range []string{"tls", "wss"} {
		b.Run(transport, func(b *testing.B) {
			const count = 500
			_, key := keys(b)
			dir := &crowd{directory: newDirectory(nil), epochs: map[string]int64{}}
			for i := range count {
				id := fmt.Sprintf("c-%d", i)
				dir.records[id] = relay.ConnectorRecord{Tenant: "of " + id, Instance: "home", ID: id, PublicKey: key.Public().(ed25519.PublicKey)}
			}
			n := startNode(b, dir, nodeOptions{transport: transport})
			before := footprint()
			for i := range count {
				startHome(b, n.url, n.tls, key, echo, func(c *tunnel.Config) { c.ConnectorID = fmt.Sprintf("c-%d", i) })
			}
			eventually(b, "all are connected", func() bool { s := n.hub.Stats(); return s.Sessions == count && s.Streams == count })
			after := footprint()
			for b.Loop() {
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric((after[0]-before[0])/count/1024, "KiB/pair")
			b.ReportMetric((after[1]-before[1])/count, "goroutines/pair")
		})
	}
}

// footprint is the heap and the stacks in use, and the number of goroutines.
func footprint() [2]float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return [2]float64{float64(m.HeapAlloc + m.StackInuse), float64(runtime.NumGoroutine())}
}

// BenchmarkHop is target 7: a call through the tunnel against a POST to a
// net/http server that echoes, in turn, one caller and 200 bytes.
func BenchmarkHop(b *testing.B) {
	n, _, _ := pair(b, "tls", echo)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, r.Body)
	}))
	defer server.Close()
	text := `"` + strings.Repeat("x", 198) + `"`
	post := func() {
		resp, err := server.Client().Post(server.URL, "application/json", strings.NewReader(text))
		if err != nil {
			b.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			b.Fatal(err)
		}
		_ = resp.Body.Close()
	}
	hop := func() {
		if res := n.call(b.Context(), contract.Call{Args: json.RawMessage(text)}, true); res.Err != nil {
			b.Fatal(res.Err)
		}
	}
	measure := func(f func(), times int) (took []time.Duration) {
		for range times {
			began := time.Now()
			f()
			took = append(took, time.Since(began))
		}
		return took
	}
	measure(hop, 200)
	measure(post, 200)
	for b.Loop() {
		var hops, posts []time.Duration
		for range 20 {
			hops, posts = append(hops, measure(hop, 200)...), append(posts, measure(post, 200)...)
		}
		slices.Sort(hops)
		slices.Sort(posts)
		b.ReportMetric(1000*quantile(hops, 0.5), "hop-p50-µs")
		b.ReportMetric(1000*quantile(posts, 0.5), "http-p50-µs")
		b.ReportMetric(quantile(hops, 0.5)/quantile(posts, 0.5), "p50-ratio")
	}
	b.ReportMetric(0, "ns/op")
}
