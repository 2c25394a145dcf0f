//go:build storms

package redisstore

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/testkit"
)

func TestNeverWrongWhenAnswersAreCut(t *testing.T) {
	t.Parallel()
	between := newProxies(t)
	config := func(c *Config) {
		c.dial, c.AttemptTimeout = between.dial, 500*time.Millisecond
		c.ReplicaAcks = FixedAcks(1) // of a number the answer to WAIT is always the last
	}
	s := openShared(t, config)
	users := make([]capping.UserID, 3000) // several calls a node
	daily := rolling(1, 24*time.Hour)
	for i, cut := range []int64{0, 1, 5, cutAtWait, cutAfterWait} {
		for j := range users {
			users[j] = capping.UserID(i*10_000_000 + j*1001)
		}
		t.Run(fmt.Sprintf("after %d answers", cut), func(t *testing.T) {
			between.each(func(x *proxy) { x.cut.Store(cut) })
			verdicts := make([]capping.Verdict, len(users))
			message := fmt.Sprintf("cut-%d", cut)
			before, had := 0, between.cuts()
			testkit.Eventually(t, func() bool { // on a busy machine a call may end before its connections are cut
				clear(verdicts)
				_ = s.Filter(background(t, 400*time.Millisecond), batchOf(message, users, daily), verdicts)
				before = count(verdicts, capping.Allowed) + count(verdicts, capping.Replayed)
				return between.cuts() > had && (cut != cutAfterWait || before == len(users))
			})
			between.each(func(x *proxy) { x.cut.Store(cutNever) })
			t.Logf("%d cuts, %d of %d allowed meanwhile", between.cuts()-had, before, len(users))

			again := filter(t, s, batchOf(message, users, daily))
			for i, v := range again {
				require.Contains(t, []capping.Outcome{capping.Allowed, capping.Replayed}, v.Outcome)
				if verdicts[i].Outcome != capping.Unavailable {
					require.Equal(t, capping.Replayed, v.Outcome)
				}
			}
			require.Equal(t, cut == cutAfterWait, before == len(users))
			logs := readLogs(t, s)
			for _, user := range users {
				require.Equal(t, 1, logs[user].Len(), "user %d", user)
			}
		})
	}
}
