//go:build storms

package redisstore

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// refused waits until a store reports users left undecided for the reason, which shows that a storm has met the
// fault.
func (f *field) refused(reason string) {
	f.Helper()
	f.until("a refusal: "+reason, func() bool {
		for _, s := range f.stores {
			if err := s.trouble.latest(); err != nil && strings.Contains(err.Error(), reason) {
				return true
			}
		}
		return false
	})
}

var fullServer = breakage{"a full Redis", otherShards, func(f *field, s shard) {
	master := f.admins[s.master]
	require.NoError(f, master.ConfigSet(f.Context(), "maxmemory", "1mb").Err())
	f.storming.answered(f, 40)
	f.refused("undecided (memory)")
	require.NoError(f, master.ConfigSet(f.Context(), "maxmemory", "0").Err())
}}

// wrongTypes replaces buckets by strings, and restores the buckets.
var wrongTypes = breakage{"a wrong type at keys", otherShards, func(f *field, s shard) {
	master := f.admins[s.master]
	buckets := f.someBuckets(s.master, 10)
	for _, key := range buckets {
		_, err := master.TxPipelined(f.Context(), func(tx redis.Pipeliner) error {
			tx.Rename(f.Context(), key, "aside:"+key)
			tx.Set(f.Context(), key, "no hash", time.Hour)
			return nil
		})
		require.NoError(f, err)
	}
	f.storming.answered(f, 40)
	f.refused("undecided (wrong_type)")
	for _, key := range buckets {
		require.NoError(f, master.Rename(f.Context(), "aside:"+key, key).Err())
	}
}}

// someBuckets returns the keys of up to n buckets on the master that the storm's load uses often.
func (f *field) someBuckets(master string, n int) (keys []string) {
	f.Helper()
	held := f.partitions(master)
	f.until("buckets", func() bool {
		for _, user := range f.storming.hotUsers() {
			partition, key, _ := f.stores[0].key(user)
			if len(keys) < n && slices.Contains(held, partition) && !slices.Contains(keys, key) &&
				f.admins[master].Exists(f.Context(), key).Val() == 1 {
				keys = append(keys, key)
			}
		}
		return len(keys) > 0
	})
	return keys
}

var skewedClock = breakage{"a clock beyond the tolerance", otherStores, func(f *field, _ shard) {
	for _, off := range []time.Duration{3 * time.Second, -3 * time.Second} {
		f.ahead.Store(int64(off))
		f.storming.answered(f, 40)
	}
	f.refused("undecided (clock)")
	f.ahead.Store(0)
}}

// wrongPassword changes a master's password without the stores' knowledge, and cuts their connections, so that they
// must log in again.
var wrongPassword = breakage{"a wrong password", otherShards, func(f *field, s shard) {
	ctx := context.WithoutCancel(f.Context())
	conn := f.admins[s.master].Conn()
	defer func() { require.NoError(f, conn.Close()) }()
	password := func(text string) error {
		return conn.Do(ctx, "acl", "setuser", leastUser, "resetpass", ">"+
			text).Err()
	}
	require.NoError(f, password("battery staple"))
	defer func() { require.NoError(f, password(leastUser)) }()
	require.NoError(f, conn.Do(ctx, "client", "kill", "type", "normal", "skipme", "yes").Err())
	f.storming.answered(f, 40)
	f.refused("undecided (auth)")
}}
