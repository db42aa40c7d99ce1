package main

import "fmt"

// goal is one line of the targets.
type goal struct {
	number, what, reached, wanted string
	met, known                    bool
}

func (g goal) verdict() string {
	switch {
	case !g.known:
		return "not measured"
	case g.met:
		return "met"
	}
	return "missed"
}

// atMost and atLeast are goals for a number.
func atMost(number, what string, value, limit float64, known bool) goal {
	return goal{number, what, figure(value, known), fmt.Sprintf("≤ %.3g", limit), value <= limit, known}
}

func atLeast(number, what string, value, limit float64, known bool) goal {
	return goal{number, what, figure(value, known), fmt.Sprintf("≥ %.3g", limit), value >= limit, known}
}

func figure(value float64, known bool) string {
	if !known {
		return "–"
	}
	return fmt.Sprintf("%.3g", value)
}

// goals are the project's targets, as far as this run was about them, with what
// it reached. Those against frp are not known without it.
func (r *report) goals() (all []goal) {
	if len(r.calls) > 0 {
		all = append(all, r.callGoals()...)
	}
	if len(r.parts) > 0 {
		all = append(all, r.partGoals()...)
	}
	return append(all, r.idleGoals()...)
}

// between is the median over the rounds of one subject over another.
func (r *report) between(size, connections int, a, b string, value func(sample) float64) (float64, bool) {
	s, ok := over(r.calls.at(size, connections, a), r.calls.at(size, connections, b), value)
	return s.median, ok
}

func (r *report) callGoals() (all []goal) {
	const s = 200
	least := map[int][3]float64{1: {0.50, 2.4, 0.35}, 16: {0.22, 4.5, 0.25}, 64: {0.22, 5, 0.20}}
	for _, name := range []string{ours, oneCall} {
		for _, c := range connections {
			what := fmt.Sprintf("%s ÷ %s, %d connections", name, throughFRP, c)
			v, ok := r.between(s, c, name, throughFRP, p50)
			all = append(all, atMost("1", "p50: "+what, v, least[c][0], ok))
			v, ok = r.between(s, c, name, throughFRP, rate)
			all = append(all, atLeast("1", "throughput: "+what, v, least[c][1], ok))
			v, ok = r.between(s, c, name, throughFRP, p99)
			all = append(all, atMost("2", "p99: "+what, v, least[c][2], ok))
		}
	}
	for _, c := range connections {
		what := fmt.Sprintf("%s ÷ %s, %d connections", oneCall, frpLane, c)
		v, ok := r.between(s, c, oneCall, frpLane, p50)
		all = append(all, atMost("3", "p50: "+what, v, 0.80, ok))
		v, ok = r.between(s, c, oneCall, frpLane, rate)
		all = append(all, atLeast("3", "throughput: "+what, v, 1.3, ok))
	}
	for _, c := range []int{16, 64} {
		v, ok := r.between(s, c, sdkLegacy, throughFRP, rate)
		all = append(all, atLeast("4", fmt.Sprintf("throughput: %s ÷ %s, %d connections", sdkLegacy, throughFRP, c), v, 1.5, ok))
	}
	for _, c := range []int{1, 16} {
		what := fmt.Sprintf("1 MiB both ways: %s ÷ %s, %d connections", oneCall, throughFRP, c)
		v, ok := r.between(large, c, oneCall, throughFRP, p50)
		all = append(all, atMost("5", "p50, "+what, v, 0.20, ok))
		v, ok = r.between(large, c, oneCall, throughFRP, rate)
		all = append(all, atLeast("5", "throughput, "+what, v, 6, ok))
	}
	for _, c := range connections {
		v, ok := r.brokerOverFloor(s, c)
		all = append(all, atMost("6", fmt.Sprintf("CPU of the broker a call ÷ %s, %d connections", floor, c), v, 3, ok))
	}
	return all
}

// brokerOverFloor compares two processes of different names.
func (r *report) brokerOverFloor(size, connections int) (float64, bool) {
	a, b := r.calls.at(size, connections, ours), r.calls.at(size, connections, floor)
	var ratios []float64
	for i := range min(len(a), len(b)) {
		if below := cpuOf("echo")(b[i]); below > 0 {
			ratios = append(ratios, cpuOf("broker")(a[i])/below)
		}
	}
	return spreadOf(ratios).median, len(ratios) > 0
}

func (r *report) partGoals() (all []goal) {
	most := func(number, what, metric string, limit, unit float64) {
		v, ok := r.parts[metric]
		all = append(all, atMost(number, what, v/unit, limit, ok))
	}
	least := func(number, what, metric string, limit float64) {
		v, ok := r.parts[metric]
		all = append(all, atLeast(number, what, v, limit, ok))
	}
	most("6", "KiB allocated a hot call", "HotLane/modern/200 B/op", 12, 1024)
	most("6", "mallocs a hot call", "HotLane/modern/200 allocs/op", 120, 1)
	most("7", "p50 of the tunnel's hop ÷ net/http echo", "Hop p50-ratio", 0.6, 1)
	most("7", "writes of the broker a call, 16 callers", "SixteenCallers broker-writes/call", 0.5, 1)
	most("7", "writes of the connector a call, 16 callers", "SixteenCallers connector-writes/call", 0.5, 1)
	for _, direction := range []string{"up", "down"} {
		at := "SmallCallsDuringATransfer/" + direction + " "
		most("8", "p50 of small calls during 64 MiB "+direction+" ÷ quiet", at+"p50-ratio", 1.1, 1)
		most("8", "p99 of small calls during 64 MiB "+direction+" ÷ quiet", at+"p99-ratio", 1.3, 1)
	}
	least("9", "16 MiB at 40 ms: speed ÷ a window of 256 KiB", "Window speed-ratio", 8)
	most("9", "a result of 1 MiB, round trips", "Window 1MiB-result-RTT", 1.3, 1)
	most("12", "µs to record a call", "Record ns/op", 1, 1000)
	return all
}

func (r *report) idleGoals() (all []goal) {
	memory := map[string]float64{"tls": 28, "wss": 52}
	for _, i := range r.idle {
		of := fmt.Sprintf("%d over %s", i.homes, i.transport)
		all = append(all,
			atMost("10", "KiB of an idle connector, "+of, i.memory, memory[i.transport], true),
			atMost("10", "goroutines of an idle connector, "+of, i.goroutines, 3, true))
		if i.homes < 5000 {
			continue
		}
		share := 10_000 / float64(i.homes)
		all = append(all,
			atMost("10", "keepalive of 10,000, % of a core, from "+of, 100*i.keepalive*share, 2, true),
			atMost("11", "s until all are back, "+of, i.back.Seconds(), 12, true),
			atMost("11", "ms of broker CPU a reconnect, "+of, micros(i.backCPU)/1000, 0.9, true))
	}
	return all
}
