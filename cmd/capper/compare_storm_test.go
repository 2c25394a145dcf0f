//go:build storms

package main

import (
	"capper/internal/testcluster"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The same over Redis, where keys are deleted.
func TestTheStoreOfRedisIsComparedWithTheAudit(t *testing.T) {
	t.Parallel()
	addr := testcluster.Single(t, testcluster.Options{}).Addrs[0]
	c := newCompared(t, "{kind: redis, redis: {addrs: ['"+addr+"'], replica_acks: 0}}", 12, time.Now)
	for n := range 200 {
		c.step(n)
	}
	c.whole(time.Hour)
	buckets := map[uint32]bool{}
	for key := range strings.FieldsSeq(redisCLI(t, addr, "--scan", "--pattern", "fc:{*}:*")) {
		name := key[strings.LastIndexByte(key, ':')+1:]
		bucket, err := strconv.ParseUint(name, 36, 32)
		if err != nil || strings.Count(key, ":") != 2 || redisCLI(t, addr, "type", key) != "hash\n" || bucket%4 != 0 {
			continue
		}
		require.Equal(t, "1\n", redisCLI(t, addr, "del", key))
		buckets[uint32(bucket)] = true
	}
	report := c.lost(time.Hour, func(user uint32) bool { return buckets[user/190] })
	require.Regexp(t, `^partition \d+ at `+addr+`$`, report.Store.Places[0].Place)
	for _, f := range report.Findings {
		require.Regexp(t, `^partition \d+ at `+addr+`$`, f.Place)
	}
}

func redisCLI(t *testing.T, addr string, args ...string) string {
	host, port, _ := strings.Cut(addr, ":")
	out, err := exec.Command("redis-cli", append([]string{"-h", host, "-p", port}, args...)...).Output()
	require.NoError(t, err)
	return string(out)
}
