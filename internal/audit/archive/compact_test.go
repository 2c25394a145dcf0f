package archive_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/audit"
	"capper/internal/audit/archive"
	"capper/internal/audit/audittest"
	"capper/internal/audit/verify"
	"capper/internal/bitmap"
	"capper/internal/capping"
	"capper/internal/config"
	"capper/internal/objects"
	"capper/internal/objects/objectstest"
)

const day = capping.Instant(24 * 3600 * 1000)

var compactBegun = capping.InstantOf(time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC))

func compactSend(at capping.Instant, message string, users *bitmap.Bitmap) *audit.Record {
	return &audit.Record{Kind: audit.Filter, At: at, Message: capping.Message{ID: message}, Generation: "g1",
		Config: "c1",
		Groups: []audit.Group{{Outcome: audit.Allowed, Users: users}}}
}

func compactTold(t *testing.T, at objects.Source) (list []string) {
	for r, err := range archive.New(at, config.ParsePolicy).Records(t.Context(), archive.Query{}) {
		require.NoError(t, err)
		text := fmt.Sprintf("%s-%d %s", r.Instance[15:], r.Sequence, r.Message.ID)
		for _, g := range r.Groups {
			text += fmt.Sprintf(" %v %d", g.Outcome, g.Users.Cardinality())
		}
		list = append(list, text)
	}
	return list
}

func healthy(t *testing.T, at objects.Source) *verify.Report {
	report, err := verify.Check(t.Context(), archive.New(at, config.ParsePolicy),
		verify.Config{Segments: func(context.Context, string) (capping.Segments, error) {
			return nil, errors.New("not needed")
		}})
	require.NoError(t, err)
	require.Empty(t, report.Findings)
	return report
}

func compacted(t *testing.T, at objects.Location, c archive.CompactConfig) archive.CompactReport {
	report, err := archive.Compact(t.Context(), at, archive.New(at, config.ParsePolicy), c)
	require.NoError(t, err)
	return report
}

// fill writes files of two instances over some days.
func fill(t *testing.T, at objects.Location) (a, b *audittest.Writer) {
	audittest.Policy(t, at, "c1", "version: c1\nlimits:\n  default: {daily: 9}\n")
	a, b = audittest.NewWriter(at, 1), audittest.NewWriter(at, 2)
	a.Roll(t, audittest.Frames(compactSend(compactBegun, "old", bitmap.Of(7)))...)
	a.Roll(t, audittest.Frames(compactSend(compactBegun+2*day, "blast", bitmap.Range(0, 200_000)),
		compactSend(compactBegun+2*day+1, "one", bitmap.Of(42)))...)
	b.Roll(t, audit.Frame{Record: compactSend(compactBegun+2*day+2, "few", bitmap.Of(41, 42, 43))})
	b.Roll(t, audittest.Frames(compactSend(compactBegun+4*day, "later", bitmap.Of(42)))...)
	a.Open(
		t,
		2,
		audittest.Frames(
			compactSend(compactBegun+2*day+3, "open", bitmap.Of(42, 44)),
			compactSend(compactBegun+2*day+5, "torn",
				bitmap.Of(42)),
		)...)
	return a, b
}

func TestErasedUsersLeaveTheFiles(t *testing.T) {
	t.Parallel()
	objectstest.OnEveryLocation(t, func(t *testing.T, name string, at objects.Location) {
		fill(t, at)
		healthy(t, at)
		audittest.Erase(t, at, 1, compactBegun+3*day, 42, 4711)
		want := []string{"1-1 old allowed 1", "1-2 blast allowed 199998", "1-3 one", "2-1 few allowed 2",
			"1-4 open allowed 1", "2-2 later allowed 1"}
		require.Equal(t, want, compactTold(t, at), "readers honour it at once")
		now := (compactBegun + 5*day).Time()
		dry := compacted(t, at, archive.CompactConfig{Now: now, Dry: true})
		done := compacted(t, at, archive.CompactConfig{Now: now})
		require.Equal(t, done, dry)
		require.Equal(t, 2, done.Rewritten)
		require.EqualValues(t, 4, done.Users)
		require.Equal(t, want, compactTold(t, at))
		require.Equal(t, 0, compacted(t, at, archive.CompactConfig{Now: now}).Rewritten, "again")
		require.Equal(t, 4, healthy(t, at).Files)
		list, err := at.List(t.Context(), audit.ErasedPrefix)
		require.NoError(t, err)
		for _, o := range list { // nothing but the files hides them now
			require.NoError(t, at.Delete(t.Context(), o.Key))
		}
		want[4] = "1-4 open allowed 2"
		require.Equal(t, want, compactTold(t, at))
	})
}

// TestErasedUsersLeaveAFileThatGoesOnAfterTheErasure checks a file with records from before and after an erasure. The
// compaction removes the user from the earlier records only.
func TestErasedUsersLeaveAFileThatGoesOnAfterTheErasure(t *testing.T) {
	t.Parallel()
	objectstest.OnEveryLocation(t, func(t *testing.T, name string, at objects.Location) {
		audittest.Policy(t, at, "c1", "version: c1\nlimits:\n  default: {daily: 9}\n")
		audittest.NewWriter(at, 1).Roll(t, audittest.Frames(compactSend(compactBegun, "before", bitmap.Of(41, 42)),
			compactSend(compactBegun+2*day, "after", bitmap.Of(42)))...)
		audittest.Erase(t, at, 1, compactBegun+day, 42)
		done := compacted(t, at, archive.CompactConfig{Now: (compactBegun + 3*day).Time()})
		require.Equal(t, []int64{1, 1}, []int64{int64(done.Rewritten), done.Users})
		list, err := at.List(t.Context(), audit.ErasedPrefix)
		require.NoError(t, err)
		for _, o := range list { // nothing but the file hides the user now
			require.NoError(t, at.Delete(t.Context(), o.Key))
		}
		require.Equal(t, []string{"1-1 before allowed 1", "1-2 after allowed 1"}, compactTold(t, at))
	})
}

func TestWhatIsOlderThanItIsKeptIsTakenAway(t *testing.T) {
	t.Parallel()
	objectstest.OnEveryLocation(t, func(t *testing.T, name string, at objects.Location) {
		fill(t, at)
		report := compacted(t, at, archive.CompactConfig{Now: (compactBegun + 5*day).Time(), Keep: 2 * 24 * time.Hour})
		require.Equal(t, 3, report.Dropped)
		require.Equal(t, []string{"1-4 open allowed 2", "2-2 later allowed 1"}, compactTold(t, at))
		files, err := at.List(t.Context(), audit.RecordsPrefix)
		require.NoError(t, err)
		require.Len(t, files, 1)
		require.NotEmpty(t, healthy(t, at).Notes, "that there were files before is worth a word")
	})
}

// ending ends a compaction after so many changes.
type ending struct {
	objects.Location
	left int
}

var errEnded = errors.New("killed")

func (e *ending) change() error {
	if e.left--; e.left < 0 {
		return errEnded
	}
	return nil
}

func (e *ending) Put(ctx context.Context, key string, body []byte) (bool, error) {
	if err := e.change(); err != nil {
		return false, err
	}
	return e.Location.Put(ctx, key, body)
}

func (e *ending) Overwrite(ctx context.Context, key string, body []byte) error {
	return errors.Join(e.change(), e.whole(func() error { return e.Location.Overwrite(ctx, key, body) }))
}

func (e *ending) Delete(ctx context.Context, key string) error {
	return errors.Join(e.change(), e.whole(func() error { return e.Location.Delete(ctx, key) }))
}

func (e *ending) whole(do func() error) error {
	if e.left < 0 {
		return nil
	}
	return do()
}

func TestACompactionThatIsKilledAnywhereIsEndedByTheNext(t *testing.T) {
	t.Parallel()
	for steps := range 12 {
		at := objects.NewDirectory(t.TempDir())
		fill(t, at)
		audittest.Erase(t, at, 1, compactBegun+3*day, 42)
		config1 := archive.CompactConfig{
			Now:  time.Now().Add(2 * time.Hour),
			Keep: time.Since((compactBegun + day).Time()),
		}
		want := compactTold(t, at)
		_, err := archive.Compact(t.Context(), &ending{at, steps}, archive.New(at, config.ParsePolicy), config1)
		if err != nil {
			require.ErrorIs(t, err, errEnded)
		}
		got := strings.Join(compactTold(t, at), "; ")
		require.True(t, strings.HasSuffix(strings.Join(want, "; "), got), got)
		healthy(t, at)
		compacted(t, at, config1)
		files, err := at.List(t.Context(), audit.RecordsPrefix)
		require.NoError(t, err)
		require.Len(t, files, 3, "no leftovers")
		require.Equal(t, want[1:], compactTold(t, at))
		healthy(t, at)
	}
}
