package pglocal

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
)

const (
	keptLines = 10
	lineMax   = 4096 // longer lines are cut
)

// lineLog passes the server's log on line by line and keeps the last lines for
// the error of a failed start.
type lineLog struct {
	logger *slog.Logger

	mu      sync.Mutex
	partial []byte
	last    []string
}

// Write takes any piece of the log.
func (l *lineLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for rest := p; len(rest) > 0; {
		line, after, complete := bytes.Cut(rest, []byte{'\n'})
		l.partial = append(l.partial, line[:min(len(line), lineMax-min(lineMax, len(l.partial)))]...)
		if complete {
			l.line(string(l.partial))
			l.partial = l.partial[:0]
		}
		rest = after
	}
	return len(p), nil
}

func (l *lineLog) line(s string) {
	if l.last = append(l.last, s); len(l.last) > keptLines {
		l.last = l.last[1:]
	}
	if l.logger != nil {
		l.logger.Debug("postgres", "line", s)
	}
}

func (l *lineLog) tail() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.last, "; ")
}
