package redisnet

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"siyuan-broker/broker/cluster"
)

// beatScript notes a sign of life by Redis's own clock, drops nodes without one
// and returns those alive: {1 if Redis did not know us, 1 if a younger process
// has our name, id, record, id, record, …}.
var beatScript = redis.NewScript(`
local now = redis.call('TIME')
now = now[1] * 1000 + math.floor(now[2] / 1000)
local ttl = tonumber(ARGV[5])
local fresh, taken = 1, 0
local old = redis.call('HGET', KEYS[1], ARGV[1])
if old then
  old = cjson.decode(old)
  if old.inc == ARGV[2] then
    fresh = 0
  elseif now - old.beat <= ttl and old.started > tonumber(ARGV[3]) then
    taken = 1
  end
end
if taken == 0 then
  redis.call('HSET', KEYS[1], ARGV[1], cjson.encode({beat = now, inc = ARGV[2], started = tonumber(ARGV[3]), address = ARGV[4]}))
end
local out = {fresh, taken}
local all = redis.call('HGETALL', KEYS[1])
for i = 1, #all, 2 do
  if now - cjson.decode(all[i + 1]).beat > ttl then
    redis.call('HDEL', KEYS[1], all[i])
  else
    table.insert(out, all[i])
    table.insert(out, all[i + 1])
  end
end
redis.call('PEXPIRE', KEYS[1], ttl * 10)
return out`)

// leaveScript removes a node unless another process has its name.
var leaveScript = redis.NewScript(`
local old = redis.call('HGET', KEYS[1], ARGV[1])
if old and cjson.decode(old).inc == ARGV[2] then redis.call('HDEL', KEYS[1], ARGV[1]) end
return 0`)

// nodes is the registry. The list is as of the last beat; during an outage
// nobody can be told to be gone, so it stays.
type nodes struct {
	net    *Net
	onGone []func(cluster.Node)
	taken  atomic.Bool

	beating chan struct{} // holds the one beat at a time

	mu    sync.Mutex
	alive map[string]cluster.Node
	as    time.Time // when alive was read
}

type nodeRecord struct {
	Started int64  `json:"started"` // unix milliseconds
	Address string `json:"address"`
}

func (s *nodes) key() string { return s.net.prefix + ":nodes" }

// beat signs and reads the list; fresh says that Redis had not known us.
func (s *nodes) beat(ctx context.Context) (fresh bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.net.timing.Upkeep)
	defer cancel()
	select {
	case s.beating <- struct{}{}:
		defer func() { <-s.beating }()
	case <-ctx.Done():
		return false, fmt.Errorf("wait for another sign of life: %w", ctx.Err())
	}
	self := s.net.self
	list, err := beatScript.Run(ctx, s.net.rdb, []string{s.key()}, self.ID, s.net.incarnation, self.Started.UnixMilli(), self.Address, s.net.timing.NodeTTL.Milliseconds()).Slice()
	if err != nil {
		return false, fmt.Errorf("sign of life: %w", err)
	}
	alive := map[string]cluster.Node{}
	for i := 2; i+1 < len(list); i += 2 {
		id, _ := list[i].(string)
		raw, _ := list[i+1].(string)
		var rec nodeRecord
		if err := json.Unmarshal([]byte(raw), &rec); err != nil {
			return false, fmt.Errorf("record of node %q: %w", id, err)
		}
		alive[id] = cluster.Node{ID: id, Address: rec.Address, Started: time.UnixMilli(rec.Started)}
	}
	taken := number(list[1]) == 1
	if s.taken.Swap(taken) != taken && taken {
		s.net.log.Error("another broker runs under the name of this node; give each its own node_id", "node", self.ID)
	}
	s.replace(alive)
	return number(list[0]) == 1, nil
}

// number reads a Lua integer, which Redis may also send as text.
func number(v any) int64 {
	switch v := v.(type) {
	case int64:
		return v
	case string:
		n, _ := strconv.ParseInt(v, 10, 64)
		return n
	}
	return 0
}

func (s *nodes) replace(alive map[string]cluster.Node) {
	s.mu.Lock()
	var gone []cluster.Node
	for id, n := range s.alive {
		if _, ok := alive[id]; !ok && id != s.net.self.ID {
			gone = append(gone, n)
		}
	}
	s.alive, s.as = alive, s.net.now()
	s.mu.Unlock()
	for _, n := range gone {
		s.net.log.Warn("node is gone", "node", n.ID, "address", n.Address)
		for _, fn := range s.onGone {
			fn(n)
		}
	}
}

// live reports whether a node is alive. One that is not known may have come
// since the last beat, so the list is read again, ten times a beat at most.
func (s *nodes) live(ctx context.Context, id string) bool {
	s.mu.Lock()
	_, ok := s.alive[id]
	age := s.net.now().Sub(s.as)
	s.mu.Unlock()
	if ok || age < s.net.timing.Beat/10 || s.net.away.Load() {
		return ok
	}
	if err := s.net.do(ctx, func(ctx context.Context) error { _, err := s.beat(ctx); return err }); err != nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok = s.alive[id]
	return ok
}

func (s *nodes) leave(ctx context.Context) {
	_ = leaveScript.Run(ctx, s.net.rdb, []string{s.key()}, s.net.self.ID, s.net.incarnation).Err() // else its time runs out
}

// Nodes is cluster.Nodes.Nodes.
func (s *nodes) Nodes() []cluster.Node {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := []cluster.Node{s.net.self}
	for id, n := range s.alive {
		if id != s.net.self.ID {
			all = append(all, n)
		}
	}
	slices.SortFunc(all, func(a, b cluster.Node) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

// OnGone is cluster.Nodes.OnGone.
func (s *nodes) OnGone(fn func(cluster.Node)) { s.onGone = append(s.onGone, fn) }
