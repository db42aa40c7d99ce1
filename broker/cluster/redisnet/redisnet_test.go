package redisnet

import (
	"crypto/rand"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"siyuan-broker/broker/cluster"
	"siyuan-broker/broker/cluster/clustertest"
	"siyuan-broker/broker/cluster/clustertest/redistest"
)

func TestMain(m *testing.M) {
	code := redistest.Main(m.Run)
	if code == 0 {
		if err := goleak.Find(); err != nil {
			_, _ = os.Stderr.WriteString(err.Error())
			code = 1
		}
	}
	os.Exit(code)
}

// quick shortens what tests wait for, not what they measure.
func quick() Timing {
	t := DefaultTiming()
	t.Beat, t.NodeTTL, t.Probe, t.Listen = 50*time.Millisecond, 2*time.Second, 20*time.Millisecond, 200*time.Millisecond
	t.Found, t.Missing, t.Renew = time.Minute, time.Minute, time.Minute // nothing is repaired by waiting
	return t
}

func joinAt(t *testing.T, url string, timing Timing) clustertest.Join {
	prefix := "test-" + rand.Text()
	return func(id string) cluster.Net {
		opts, err := Connect(url)
		if err != nil {
			t.Fatal(err)
		}
		n, err := New(Options{Redis: opts, Prefix: prefix, Self: cluster.Node{ID: id, Address: id + ".example:7000"}, Timing: timing,
			Log: slog.New(slog.NewTextHandler(testLog{t}, nil))})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
}

type testLog struct{ t *testing.T }

func (l testLog) Write(b []byte) (int, error) {
	l.t.Log(strings.TrimSpace(string(b)))
	return len(b), nil
}

func TestRedis(t *testing.T) {
	clustertest.Run(t, func(t *testing.T) clustertest.Join {
		timing := quick()
		timing.Exchange, timing.Upkeep = time.Second, 5*time.Second // a busy machine is no outage here
		return joinAt(t, redistest.Shared(t).URL, timing)
	})
}
