//go:build storms

package redisstore

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/testcluster"
	"capper/internal/testkit"
)

// A call that waits for a failover stores its message's text together with its sends. The text used to be given up at
// the first failure, so logs showed sends of unknown messages.
func TestTextsOfMessagesOutliveAFailover(t *testing.T) {
	t.Parallel()
	c := testcluster.Start(t, testcluster.Options{Replicas: 1})
	s := openTest(t, Config{Addrs: c.Addrs, ReplicaAcks: FixedAcks(0), AttemptTimeout: 400 * time.Millisecond})
	lost := s.top.Route(0).Addr()
	message := ""
	for n := 0; message == ""; n++ {
		name := fmt.Sprint("m-", n)
		if s.top.Route(s.messagePartition(capping.Message{ID: name}.Token())).Addr() == lost {
			message = name
		}
	}
	batch := batchOf(message, spread(600))
	require.NoError(t, c.Kill(lost))
	verdicts := make([]capping.Verdict, len(batch.Users))
	require.NoError(t, s.Filter(background(t, time.Minute), batch, verdicts))
	require.Equal(t, len(batch.Users), count(verdicts, capping.Allowed))
	testkit.Eventually(t, func() bool { // it may be under way still
		texts, err := s.Messages(t.Context(), []capping.Token{batch.Token})
		return err == nil && texts[batch.Token] == batch.Message
	})
}
