package redisnet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	mrand "math/rand/v2"
	"net"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"siyuan-broker/broker/cluster"
)

// bus carries events over Redis's publish and subscribe: one channel for all
// nodes, one for each.
type bus struct {
	net    *Net
	fanout *cluster.Fanout
	gaps   atomic.Int64
	unsent atomic.Bool // an event could not be sent; the others learn so once they can be reached
}

// message is an Event on its way. From names the process, which ignores its own
// echo: its subscribers had the event at once.
type message struct {
	From string `json:"from"`
	cluster.Event
}

func (b *bus) everyone() string { return b.net.prefix + ":events" }

func (b *bus) only(node string) string { return b.everyone() + ":" + url.QueryEscape(node) }

// Publish is cluster.Bus.Publish.
func (b *bus) Publish(ctx context.Context, e cluster.Event) error {
	if len(e.Data) > cluster.MaxEventData {
		return fmt.Errorf("%s event of %d bytes: %w", e.Kind, len(e.Data), cluster.ErrTooLarge)
	}
	e.Node = b.net.self.ID
	if e.To == "" || e.To == e.Node {
		b.net.deliver(e)
	}
	if e.To == e.Node {
		return nil
	}
	channel := b.everyone()
	if e.To != "" {
		channel = b.only(e.To)
	}
	payload, err := b.encode(e)
	if err != nil {
		return err
	}
	if err = b.send(ctx, channel, payload); err != nil {
		b.unsent.Store(true)
	}
	return err
}

func (b *bus) send(ctx context.Context, channel string, payload []byte) error {
	return b.net.do(ctx, func(ctx context.Context) error { return b.net.rdb.Publish(ctx, channel, payload).Err() })
}

// confess tells the other nodes that events of this one got lost.
func (b *bus) confess(ctx context.Context) {
	if !b.unsent.Swap(false) {
		return
	}
	payload, err := b.encode(cluster.Event{Kind: cluster.Lost, Node: b.net.self.ID})
	if err == nil {
		err = b.send(ctx, b.everyone(), payload)
	}
	if err != nil {
		b.unsent.Store(true)
	}
}

func (b *bus) encode(e cluster.Event) ([]byte, error) {
	payload, err := json.Marshal(message{b.net.incarnation, e})
	if err != nil {
		return nil, fmt.Errorf("encode %s event: %w", e.Kind, err)
	}
	return payload, nil
}

// Subscribe is cluster.Bus.Subscribe.
func (b *bus) Subscribe(fn func(cluster.Event), kinds ...cluster.Kind) func() {
	return b.fanout.Subscribe(fn, kinds...)
}

// listen subscribes, for ever again. Whatever happens between two subscriptions
// is a gap.
func (b *bus) listen(ctx context.Context) {
	for first := true; ; first = false {
		err := b.receive(ctx, first)
		if ctx.Err() != nil {
			return
		}
		b.net.log.Debug("subscription ended", "error", err)
		wait := time.NewTimer(b.net.timing.Probe/2 + time.Duration(mrand.Int64N(int64(b.net.timing.Probe))))
		select {
		case <-ctx.Done():
			wait.Stop()
			return
		case <-wait.C:
		}
	}
}

func (b *bus) receive(ctx context.Context, first bool) error {
	sub := b.net.rdb.Subscribe(ctx)
	closed := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { defer close(closed); _ = sub.Close() }) // wakes Receive
	defer func() {
		if stop() {
			_ = sub.Close()
		} else {
			<-closed
		}
	}()
	if err := sub.Subscribe(ctx, b.everyone(), b.only(b.net.self.ID)); err != nil {
		return fmt.Errorf("subscribe: %w", err)
	}
	asked, confirmed := false, 0
	for {
		got, err := sub.ReceiveTimeout(ctx, b.net.timing.Listen)
		var slow net.Error
		switch {
		case errors.As(err, &slow) && slow.Timeout() && !asked && confirmed == 2:
			if err := sub.Ping(ctx); err != nil {
				return fmt.Errorf("ping: %w", err)
			}
			asked = true
			continue
		case err != nil:
			return fmt.Errorf("receive: %w", err)
		}
		asked = false
		switch m := got.(type) {
		case *redis.Subscription:
			if confirmed++; confirmed == 2 { // the first time, too, events came before
				if !first {
					b.gaps.Add(1)
				}
				b.net.deliver(cluster.Event{Kind: cluster.Lost})
			}
		case *redis.Message:
			b.take([]byte(m.Payload))
		}
	}
}

func (b *bus) take(payload []byte) {
	var m message
	if err := json.Unmarshal(payload, &m); err != nil {
		b.net.log.Warn("event could not be read", "error", err)
		return
	}
	if m.From != b.net.incarnation {
		b.net.deliver(m.Event)
	}
}
