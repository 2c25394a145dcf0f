package verify_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/audit"
	"capper/internal/audit/archive"
	"capper/internal/audit/audittest"
	"capper/internal/audit/verify"
	"capper/internal/capping"
	"capper/internal/config"
	"capper/internal/objects"
	"capper/internal/objects/objectstest"
)

// days writes a file a day of two instances.
func days(t *testing.T, at objects.Location, n int) (entries [2][]audit.Entry) {
	audittest.Policy(t, at, "c1", "version: c1\n"+head+"  default: {daily: 9}\n")
	for i := range entries {
		w := audittest.NewWriter(at, i+1)
		for d := range n {
			when := noon + capping.Instant(d)*day + capping.Instant(i)
			frames := audittest.Frames(sent(when, fmt.Sprint("m-", i, d), 1, 42), sent(when+1, "b", 1, 43))
			entries[i] = append(entries[i], w.Roll(t, frames...))
		}
	}
	return entries
}

func indexKey(e audit.Entry) string { return audit.IndexKey(audit.Day(e.First), e.Instance, e.Number) }

func compactAt(t *testing.T, at objects.Location, now capping.Instant, keep time.Duration) {
	_, err := archive.Compact(t.Context(), at, archive.New(at, config.ParsePolicy),
		archive.CompactConfig{Now: now.Time(), Keep: keep})
	require.NoError(t, err)
}

// An instance loses entries of the index: the first, some at the begin, in the middle or at the end, or all. Its
// records are read by nobody then, and each loss is found.
func TestLostEntriesAreFound(t *testing.T) {
	t.Parallel()
	objectstest.OnEveryLocation(t, func(t *testing.T, name string, at objects.Location) {
		entries := days(t, at, 5)
		require.Empty(t, checked(t, at).Findings)
		before, _ := all(t, at)
		for _, lost := range [][]int{{0}, {0, 1, 2}, {2}, {1, 3}, {4}, {3, 4}, {0, 4}, {0, 1, 2, 3, 4}} {
			bodies := map[string][]byte{}
			for _, i := range lost {
				key := indexKey(entries[0][i])
				body, err := at.Read(t.Context(), key, objects.MaxDocumentBytes)
				require.NoError(t, err)
				bodies[key] = body
				require.NoError(t, at.Delete(t.Context(), key))
			}
			left, _ := all(t, at)
			require.Equal(t, before-2*len(lost), left)
			report := checked(t, at)
			require.Equal(t, len(lost), report.Found[verify.Unindexed], "%v: %+v", lost, report.Findings)
			for key, body := range bodies {
				require.NoError(t, at.Overwrite(t.Context(), key, body))
			}
		}
		require.Empty(t, checked(t, at).Findings)
	})
}

// Once a compaction has run, files that are gone with their entries are found as well, also the first ones; what
// it took away itself is no finding, before and after.
func TestLostFilesAreToldFromThoseTakenAway(t *testing.T) {
	t.Parallel()
	objectstest.OnEveryLocation(t, func(t *testing.T, name string, at objects.Location) {
		entries := days(t, at, 8)
		lose := func(e audit.Entry) {
			require.NoError(t, at.Delete(t.Context(), indexKey(e)))
			require.NoError(t, at.Delete(t.Context(), e.Key))
		}
		lose(entries[1][0])
		require.Empty(t, checked(t, at).Findings, "an earlier version may have taken it away")
		require.NotEmpty(t, checked(t, at).Notes)
		now := noon + 8*day
		compactAt(t, at, now, 6*24*time.Hour) // takes away the first two files of each
		require.Empty(t, checked(t, at).Findings)
		compactAt(t, at, now, 6*24*time.Hour)
		require.Empty(t, checked(t, at).Findings)

		lose(entries[0][2])
		report := checked(t, at)
		require.Equal(t, map[string]int{verify.Missing: 1}, report.Found, "%+v", report.Findings)
		require.Contains(t, report.Findings[0].Text,
			"files 3 to 3 of instance "+entries[0][0].Instance+" are missing, and no compaction")
		compactAt(t, at, now, 6*24*time.Hour)
		require.Equal(t, report.Findings, checked(t, at).Findings, "a compaction excuses nothing")

		body, err := at.Read(t.Context(), indexKey(entries[1][2]), objects.MaxDocumentBytes)
		require.NoError(t, err)
		require.NoError(t, at.Delete(t.Context(), indexKey(entries[1][2])))
		compactAt(t, at, now, 6*24*time.Hour)
		report = checked(t, at)
		require.Equal(t, map[string]int{verify.Missing: 2, verify.Unindexed: 1}, report.Found, "%+v", report.Findings)
		require.NoError(t, at.Overwrite(t.Context(), indexKey(entries[1][2]), body))
		compactAt(t, at, now, 4*24*time.Hour) // takes away what is behind the hole
		require.Empty(t, checked(t, at).Findings)
	})
}

// The first compaction that notes what it takes away meets a file whose entry was lost before: that is no file that
// an earlier one took away.
func TestACompactionExcusesNoLostEntry(t *testing.T) {
	t.Parallel()
	objectstest.OnEveryLocation(t, func(t *testing.T, name string, at objects.Location) {
		entries := days(t, at, 5)
		for _, e := range entries[0][:2] {
			require.NoError(t, at.Delete(t.Context(), indexKey(e)))
		}
		for range 2 {
			compactAt(t, at, noon+5*day, 0)
			require.Equal(t, 2, checked(t, at).Found[verify.Unindexed])
		}
	})
}

// An entry that is replaced by an older one, of the file before it was rewritten, names a file that is gone.
func TestAnOlderEntryIsFound(t *testing.T) {
	t.Parallel()
	objectstest.OnEveryLocation(t, func(t *testing.T, name string, at objects.Location) {
		entries := days(t, at, 3)
		key := indexKey(entries[0][0])
		older, err := at.Read(t.Context(), key, objects.MaxDocumentBytes)
		require.NoError(t, err)
		audittest.Erase(t, at, 1, noon+3*day, 42)
		compactAt(t, at, noon+4*day, 0)
		require.Empty(t, checked(t, at).Findings)
		require.NoError(t, at.Overwrite(t.Context(), key, older))
		require.Equal(t, 1, checked(t, at).Found[verify.Missing])
		other, err := at.Read(t.Context(), indexKey(entries[0][1]), objects.MaxDocumentBytes)
		require.NoError(t, err)
		require.NoError(t, at.Overwrite(t.Context(), key, other))
		require.Equal(t, 1, checked(t, at).Found[verify.Damage])
	})
}

// A note that is damaged is a finding, and excuses nothing.
func TestADamagedNoteIsFound(t *testing.T) {
	t.Parallel()
	at := objects.NewDirectory(t.TempDir())
	entries := days(t, at, 6)
	compactAt(t, at, noon+6*day, 4*24*time.Hour)
	require.Empty(t, checked(t, at).Findings)
	require.NoError(t, at.Overwrite(t.Context(), audit.DroppedKey(entries[0][0].Instance), []byte("{}")))
	require.Equal(t, map[string]int{verify.Damage: 1, verify.Missing: 1}, checked(t, at).Found)
}

// underWay is a location to which a service uploads the index entry of a file: the first reader does not find it yet.
type underWay struct {
	objects.Location
	key   string
	entry []byte
	reads int
}

// Read returns the document, and puts the entry after a read that did not find it.
func (u *underWay) Read(ctx context.Context, key string, most int64) ([]byte, error) {
	raw, err := u.Location.Read(ctx, key, most)
	if key == u.key {
		if u.reads++; u.reads == 1 {
			err = errors.Join(err, u.Location.Overwrite(ctx, key, u.entry))
		}
	}
	return raw, err
}

// A file whose entry is being uploaded is no finding.
func TestAnEntryThatIsUnderWayIsNoFinding(t *testing.T) {
	t.Parallel()
	objectstest.OnEveryLocation(t, func(t *testing.T, name string, at objects.Location) {
		entries := days(t, at, 3)
		u := &underWay{Location: at, key: indexKey(entries[0][2])}
		var err error
		u.entry, err = at.Read(t.Context(), u.key, objects.MaxDocumentBytes)
		require.NoError(t, err)
		for uploading, findings := range map[time.Duration]int{time.Hour: 0, 0: 1} {
			require.NoError(t, at.Delete(t.Context(), u.key))
			u.reads = 0
			report, err := verify.Check(t.Context(), archive.New(u, config.ParsePolicy),
				verify.Config{Segments: worlds, Uploading: uploading})
			require.NoError(t, err)
			require.Len(t, report.Findings, findings, "%+v", report.Findings)
		}
		require.Empty(t, checked(t, at).Findings)
	})
}
