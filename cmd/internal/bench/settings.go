package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// settings are what the environment says; docs/performance.md lists the names.
type settings struct {
	rounds     int
	cell       time.Duration // measured time of one subject in one round
	connectors int           // idle ones
	frps, frpc string        // programs; both or neither
	siyuanURL  string
	siyuan     string          // its token
	sections   map[string]bool // empty: all
}

// The parts of a run, as BENCH_ONLY names them.
const (
	sectionCalls  = "calls"
	sectionParts  = "parts"
	sectionIdle   = "idle"
	sectionSiYuan = "siyuan"
)

func settingsFrom(getenv func(string) string) (s settings, err error) {
	s = settings{frps: getenv("FRPS"), frpc: getenv("FRPC"), siyuanURL: getenv("SIYUAN_API_URL"), siyuan: getenv("SIYUAN_TOKEN"), sections: map[string]bool{}}
	number := func(name string, standard, least float64) float64 {
		text := getenv(name)
		if text == "" || err != nil {
			return standard
		}
		v, bad := strconv.ParseFloat(text, 64)
		if bad != nil || v < least {
			err = fmt.Errorf("%s: %q is not a number of at least %v", name, text, least)
		}
		return v
	}
	s.rounds = int(number("BENCH_ROUNDS", 3, 1))
	s.cell = time.Duration(number("BENCH_SECONDS", 0.7, 0.1) * float64(time.Second))
	s.connectors = int(number("BENCH_CONNECTORS", 10_000, 0))
	for _, name := range strings.FieldsFunc(getenv("BENCH_ONLY"), func(r rune) bool { return r == ',' || r == ' ' }) {
		switch name {
		case sectionCalls, sectionParts, sectionIdle, sectionSiYuan:
			s.sections[name] = true
		default:
			return s, fmt.Errorf("BENCH_ONLY: %q is none of %s, %s, %s, %s", name, sectionCalls, sectionParts, sectionIdle, sectionSiYuan)
		}
	}
	if (s.frps == "") != (s.frpc == "") {
		return s, fmt.Errorf("FRPS and FRPC: name both programs, or neither")
	}
	return s, err
}

func (s *settings) wants(section string) bool { return len(s.sections) == 0 || s.sections[section] }
