//go:build storms

package redisstore

import (
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"capper/internal/testkit"
)

// slotMove moves a slot like redis-cli --cluster reshard.
type slotMove struct {
	*field
	slot     int
	from, to *redis.Client
}

// movesTo returns moves of some of the shard's slots to another shard. The slots are those of partitions, because all
// others are empty.
func (f *field) movesTo(to, from shard) (moves []slotMove) {
	f.Helper()
	held := f.partitions(from.master)
	require.NotEmpty(f, held, "the master holds no partition: there is nothing to move")
	if i := slices.Index(held, f.pacersPartition()); i > 0 {
		held[0], held[i] = held[i], held[0]
	}
	for _, p := range held[:min(len(held), 4)] {
		moves = append(moves, slotMove{f, f.stores[0].keyspace.Slot(p), f.admins[from.master], f.admins[to.master]})
	}
	return moves
}

func (f *field) other(s shard) shard {
	for _, other := range f.shards() {
		if other.master != s.master {
			return other
		}
	}
	f.Fatal("no other shard")
	return shard{}
}

// moveSlots moves some slots to another shard and back, so that consecutive faults leave no master without slots.
func moveSlots(f *field, s shard) {
	moves := f.movesTo(f.other(s), s)
	for _, m := range moves {
		m.begin()
		m.end()
	}
	f.storming.answered(f, 30)
	for _, m := range moves {
		m.back()
	}
}

// holdSlotsHalfMoved keeps each slot's keys on two nodes for longer than any call waits, so that no user is decided
// by waiting for the end of the move.
func holdSlotsHalfMoved(f *field, s shard) {
	moves := f.movesTo(f.other(s), s)
	for _, m := range moves {
		f.until("two keys that can be parted", func() bool { return m.keys() >= 2 })
		m.begin()
		m.carryHalf()
	}
	f.storming.each(f, 25)
	for _, m := range moves {
		m.end()
	}
	for _, m := range moves {
		m.back()
	}
}

func (m slotMove) begin() {
	m.set(m.to, "importing", m.from)
	m.set(m.from, "migrating", m.to)
}

func (m slotMove) end() {
	for m.carry(atATime) > 0 {
	}
	m.set(m.to, "node", m.to)
	m.set(m.from, "node", m.to)
	m.until("every node knows where the slot is", m.known)
}

// known reports whether all nodes know the slot's new owner. A node that takes the slot over earlier might not exceed
// an epoch that it has not heard of.
func (m slotMove) known() bool {
	return !slices.ContainsFunc(m.cluster.Addrs, func(addr string) bool {
		parts, err := slotsOf(m.Context(), m.admins[addr])
		return err != nil || masterOf(parts, m.slot) != m.to.Options().Addr
	})
}

func (m slotMove) back() {
	m.from, m.to = m.to, m.from
	m.begin()
	m.end()
}

func (m slotMove) carryHalf() {
	for n := int(m.keys() / 2); n > 0; {
		carried := m.carry(min(n, atATime))
		require.NotZero(m, carried)
		n -= carried
	}
	require.NotZero(m, m.keys(), "keys that stay")
}

// atATime is the number of keys that redis-cli --cluster reshard moves in one command. Key by key, a busy machine might
// move them no faster than the storm creates others.
const atATime = 10

// carry moves at most n keys, and returns how many it moved.
func (m slotMove) carry(n int) int {
	keys, err := m.from.ClusterGetKeysInSlot(m.Context(), m.slot, n).Result()
	require.NoError(m, err)
	if len(keys) > 0 {
		m.carryKeys(keys...)
	}
	return len(keys)
}

// carryKeys moves the keys.
func (m slotMove) carryKeys(keys ...string) {
	host, port, _ := strings.Cut(m.to.Options().Addr, ":")
	args := []any{"migrate", host, port, "", 0, testkit.Patience.Milliseconds(), "keys"}
	for _, key := range keys {
		args = append(args, key)
	}
	require.NoError(m, m.from.Do(m.Context(), args...).Err())
}

func (m slotMove) keys() int64 {
	n, err := m.from.ClusterCountKeysInSlot(m.Context(), m.slot).Result()
	require.NoError(m, err)
	return n
}

// set sets the node's state of the slot in relation to another node.
func (m slotMove) set(at *redis.Client, state string, other *redis.Client) {
	id, err := other.Do(m.Context(), "cluster", "myid").Text()
	require.NoError(m, err)
	require.NoError(m, at.Do(m.Context(), "cluster", "setslot", m.slot, state, id).Err())
}
