package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"siyuan-broker/tenants"
)

const (
	policyChannel     = "siyuan_policy"     // "<tenant> <version>"
	revocationChannel = "siyuan_revocation" // "<seq>"

	listenerName = "siyuan-listen" // in pg_stat_activity
	pingPatience = 5 * time.Second

	reconnectMin = 100 * time.Millisecond
	reconnectMax = 5 * time.Second
)

// Listen pushes events to fn until ctx ends. Every connection, the first one
// too, begins with a Lost event: what was cached before may be out of date.
func (s *Store) Listen(ctx context.Context, fn func(tenants.Event)) error {
	wait := reconnectMin
	for {
		err := s.listenOnce(ctx, func(e tenants.Event) {
			wait = reconnectMin
			fn(e)
		})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		s.logger.Warn("database push lost, connecting again", "error", err, "wait", wait)
		timer := time.NewTimer(wait/2 + rand.N(wait/2)) // half jittered: nodes do not return in step
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C:
		}
		wait = min(2*wait, reconnectMax)
	}
}

func (s *Store) listenOnce(ctx context.Context, fn func(tenants.Event)) error {
	conf, err := pgx.ParseConfig(s.listenDSN)
	if err != nil {
		return fmt.Errorf("listen: database address: %w", err)
	}
	conf.RuntimeParams["application_name"] = listenerName
	conn, err := pgx.ConnectConfig(ctx, conf)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = conn.Close(closing) // nothing is lost with it
	}()
	if _, err := conn.Exec(ctx, "listen "+policyChannel+"; listen "+revocationChannel); err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	fn(tenants.Event{Lost: true})
	for {
		n, err := s.awaitPush(ctx, conn)
		if err != nil {
			return err
		}
		if n == nil {
			continue
		}
		event, err := parsePush(n)
		if err != nil { // anybody who may connect may notify
			s.logger.Warn("database push not understood", "channel", n.Channel, "error", err)
			continue
		}
		fn(event)
	}
}

// awaitPush waits for a push; after a quiet while it asks whether the
// connection still lives, and returns nothing.
func (s *Store) awaitPush(ctx context.Context, conn *pgx.Conn) (*pgconn.Notification, error) {
	quiet, cancel := context.WithTimeout(ctx, s.listenIdle)
	defer cancel()
	n, err := conn.WaitForNotification(quiet)
	if err == nil || ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
		return n, err
	}
	alive, stop := context.WithTimeout(ctx, pingPatience)
	defer stop()
	return nil, conn.Ping(alive)
}

func parsePush(n *pgconn.Notification) (tenants.Event, error) {
	if n.Channel == revocationChannel {
		seq, err := strconv.ParseInt(n.Payload, 10, 64)
		return tenants.Event{Revocation: seq}, err
	}
	id, number, _ := strings.Cut(n.Payload, " ")
	tenant, err := uuid.Parse(id)
	if err != nil {
		return tenants.Event{}, err
	}
	version, err := strconv.ParseInt(number, 10, 64)
	return tenants.Event{Policy: tenant, Version: version}, err
}
