package capping_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
)

// changed is a store in two partitions, of even and odd users, whose sets have changed to version "new".
type changed struct{ instant }

func (changed) Filter(_ context.Context, b *capping.Batch, verdicts []capping.Verdict) error {
	for i, user := range b.Users {
		if b.Known != nil && b.Known[user%2] != "new" {
			verdicts[i] = capping.Verdict{Outdated: true, FreesAt: capping.Never}
			b.Outdated.Store(true)
			continue
		}
		verdicts[i].Outcome = capping.Allowed
	}
	return nil
}

// halfRead is a generation that can read the latest changes of even users alone.
type halfRead struct {
	halves
	versions []string
}

func (halfRead) Set(string) (capping.Set, bool) { return empty{}, true }
func (h halfRead) Versions() []string           { return h.versions }
func (halfRead) Behind(string) capping.Instant  { return 0 }
func (h halfRead) Renew(context.Context, []capping.UserID) (capping.Live, error) {
	h.versions = []string{"new", "old"}
	return h, errors.New("the odd partition is away")
}

type empty struct{}

func (empty) Mark([]capping.UserID, []uint32, []uint8, uint8) {}

// TestChangesOfAPartitionThatCannotBeRead checks that only the partition's users are unavailable.
func TestChangesOfAPartitionThatCannotBeRead(t *testing.T) {
	t.Parallel()
	segments := func() capping.Segments { return halfRead{versions: []string{"old", "old"}} }
	policy := &capping.Policy{Suppress: []capping.Suppression{{Set: "opted-out"}}}
	c := capping.New(changed{}, segments, policy, time.Now)
	users := []capping.UserID{1, 2, 3, 4, 6}
	d := c.Filter(t.Context(), &capping.Send{
		Message: capping.Message{ID: "m"}, Users: users, Enforce: true, Record: true,
	})
	require.ErrorContains(t, d.Err,
		"read the latest changes of sets (named groups of users): the odd partition is away")
	for i, user := range users {
		require.Equal(t, user%2 == 0, d.Verdicts[i].Outcome == capping.Allowed, user)
		require.False(t, d.Verdicts[i].Outdated)
	}
}
