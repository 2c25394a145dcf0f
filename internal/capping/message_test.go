package capping_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
)

// batchOf returns a batch that records the message for the given number of users.
func batchOf(id string, users int) *capping.Batch {
	return &capping.Batch{Message: capping.Message{ID: id}, Record: true, Users: make([]capping.UserID, users)}
}

// newMemory returns a memory and a function that advances its clock.
func newMemory() (memory *capping.MessageMemory, advance func(time.Duration)) {
	now := time.Date(2026, 11, 20, 16, 0, 0, 0, time.UTC)
	return capping.NewMessageMemory(func() time.Time { return now }), func(d time.Duration) { now = now.Add(d) }
}

func TestMessageMemoryTakesUpBulksAndSomeSmallMessages(t *testing.T) {
	t.Parallel()
	memory, advance := newMemory()
	kept := 0
	for i := range 1500 {
		require.True(t, memory.Keep(batchOf(fmt.Sprint("bulk-", i), capping.BulkUsers)))
		if memory.Keep(batchOf(fmt.Sprint("small-", i), capping.BulkUsers-1)) {
			kept++
		}
	}
	require.Equal(t, 1000, kept)
	require.False(t, memory.Keep(batchOf("small-1400", 1)))
	advance(time.Second)
	require.True(t, memory.Keep(batchOf("small-1400", 1)))
}

func TestMessageMemoryKeepsWhatItTookUp(t *testing.T) {
	t.Parallel()
	memory, _ := newMemory()
	require.True(t, memory.Keep(batchOf("campaign", capping.BulkUsers)))
	require.True(t, memory.Keep(batchOf("single", 1)))
	for i := range 50_000 {
		memory.Keep(batchOf(fmt.Sprint("other-", i), 1+i%capping.BulkUsers))
		require.True(t, memory.Keep(batchOf("campaign", 1)), i)
		require.True(t, memory.Keep(batchOf("single", 1)), i)
	}
	require.False(t, memory.Keep(&capping.Batch{
		Message: capping.Message{Namespace: "team", ID: "campaign"}, Record: true, Users: make([]capping.UserID, 1),
	}), "of another namespace")
}

func TestMessageMemoryIsBounded(t *testing.T) {
	t.Parallel()
	memory, _ := newMemory()
	for i := range 1000 {
		require.True(t, memory.Keep(batchOf(fmt.Sprint("small-", i), 1)))
	}
	for i := range 20_000 {
		require.True(t, memory.Keep(batchOf(fmt.Sprint("bulk-", i), capping.BulkUsers)))
	}
	require.False(t, memory.Keep(batchOf("small-0", 1)), "nobody asked for it for 20,000 messages")
	require.True(t, memory.Keep(batchOf("bulk-12000", 1)))
}

func TestMessageMemoryKeepsNoPreview(t *testing.T) {
	t.Parallel()
	memory, _ := newMemory()
	preview := batchOf("m", capping.BulkUsers)
	preview.Record = false
	require.False(t, memory.Keep(preview))
	require.False(t, memory.Due(preview))
	require.False(t, memory.Keep(batchOf("", capping.BulkUsers)), "no id")
}

func TestTextsAreDueOnceAMinuteAndWithBulks(t *testing.T) {
	t.Parallel()
	memory, advance := newMemory()
	small, bulk := batchOf("m", 1), batchOf("m", capping.BulkUsers)
	require.False(t, memory.Due(small), "not taken up")
	require.True(t, memory.Keep(small))
	require.True(t, memory.Due(small))
	require.False(t, memory.Due(small))
	require.True(t, memory.Due(bulk))
	advance(59 * time.Second)
	require.False(t, memory.Due(small))
	advance(time.Second)
	require.True(t, memory.Due(small))
	advance(-time.Hour)
	require.True(t, memory.Due(small), "the clock was set back")
}
