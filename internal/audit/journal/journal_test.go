package journal_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/audit"
	"capper/internal/audit/journal"
	"capper/internal/bitmap"
	"capper/internal/capping"
	"capper/internal/objects"
	"capper/internal/objects/s3test"
	"capper/internal/testkit"
)

func TestMain(m *testing.M) { os.Exit(s3test.Main(m.Run)) }

var policy = &capping.Policy{Version: "c1"}

// open opens a journal that is closed with the test.
func open(t testing.TB, cfg journal.Config) *journal.Journal {
	t.Helper()
	j, err := journal.Open(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = j.Close(ctx)
	})
	return j
}

// call is a filter call that allowed the users.
func call(message string, users ...capping.UserID) (*audit.Record, *capping.Decisions) {
	d := &capping.Decisions{Users: users, Verdicts: make([]capping.Verdict, len(users)),
		Codes: make([]uint8, len(users)), Generation: "g1", Policy: policy}
	for i := range d.Verdicts {
		d.Verdicts[i].Outcome = capping.Allowed
	}
	return &audit.Record{At: capping.InstantOf(time.Now()), Message: capping.Message{ID: message}, Client: "crm"}, d
}

// records reads a whole file.
func records(t testing.TB, file []byte) (found []*audit.Record, gaps []audit.Gap, r *audit.Reader) {
	t.Helper()
	r, err := audit.NewReader(bytes.NewReader(file))
	require.NoError(t, err)
	for {
		frame, err := r.Next()
		if errors.Is(err, io.EOF) {
			return found, gaps, r
		}
		require.NoError(t, err)
		if frame.Record != nil {
			found = append(found, frame.Record)
		}
		if frame.Gap != nil {
			gaps = append(gaps, *frame.Gap)
		}
	}
}

// place is a location as a reader sees it.
type place struct{ objects.Location }

// entries is the index, of today and the days beside it.
func (p place) entries(t testing.TB) (entries []audit.Entry) {
	t.Helper()
	now := time.Now()
	for _, day := range []time.Time{now.AddDate(0, 0, -1), now, now.AddDate(0, 0, 1)} {
		list, err := p.List(t.Context(), audit.IndexPrefix+audit.Day(day)+"/")
		require.NoError(t, err)
		for _, object := range list {
			if strings.Contains(object.Key, objects.TempPrefix) {
				continue
			}
			body, err := p.Read(t.Context(), object.Key, 1<<20)
			require.NoError(t, err)
			var e audit.Entry
			require.NoError(t, audit.Unseal(body, &e))
			entries = append(entries, e)
		}
	}
	return entries
}

// messages counts the records of each message in the rolled files, and holds the files to their entries.
func (p place) messages(t testing.TB) map[string]int {
	t.Helper()
	counts := map[string]int{}
	for _, e := range p.entries(t) {
		file, err := p.Read(t.Context(), e.Key, 1<<30)
		require.NoError(t, err)
		require.Len(t, file, int(e.Bytes))
		found, gaps, r := records(t, file)
		require.True(t, r.Ended())
		require.EqualValues(t, e.Records, len(found))
		require.Equal(t, r.So().Last, e.LastSequence)
		lost := uint64(0)
		for _, gap := range gaps {
			lost += gap.Lost
		}
		require.Equal(t, e.Lost, lost)
		for _, r := range found {
			counts[r.Message.ID]++
			require.Equal(t, e.Instance, r.Instance)
		}
	}
	return counts
}

func directory(t testing.TB) (string, place) {
	dir := filepath.Join(t.TempDir(), "audit")
	return dir, place{objects.NewDirectory(dir)}
}

func TestARecordIsInTheOpenFileAfterAFlushAndAtItsPlaceAfterARoll(t *testing.T) {
	t.Parallel()
	dir, at := directory(t)
	j := open(t, journal.Config{To: dir})
	j.SetPolicy(t.Context(), "c1", []byte("limits: {}\n"))
	j.Filter(call("promo-7", 3, 1, 2))
	require.NoError(t, j.Flush(t.Context()))

	stored, err := os.ReadFile(filepath.Join(j.Room(), "1.audit"))
	require.NoError(t, err)
	found, _, r := records(t, stored)
	require.False(t, r.Ended(), "it is open")
	require.Equal(t, j.Instance(), r.Header().Instance)
	require.Len(t, found, 1)
	require.Equal(t, []uint32{1, 2, 3}, found[0].Groups[0].Users.IDs())
	require.Equal(t, []string{"g1", "c1", "crm"}, []string{found[0].Generation, found[0].Config, found[0].Client})
	text, err := at.Read(t.Context(), audit.PolicyKey("c1"), 1<<10)
	require.NoError(t, err)
	text, err = audit.OpenPolicy(text)
	require.NoError(t, err)
	require.Equal(t, "limits: {}\n", string(text))
	require.Equal(t, "ok", j.Status().State)

	require.NoError(t, j.Close(t.Context()))
	require.Equal(t, map[string]int{"promo-7": 1}, at.messages(t))
	e := at.entries(t)[0]
	require.Equal(t, []any{uint64(1), uint64(1), []string{"g1"}, []string{"c1"}, map[string]int{"filter": 1}, false},
		[]any{e.FirstSequence, e.LastSequence, e.Generations, e.Configs, e.Kinds, e.Recovered})
	require.Len(t, e.Messages, 1)
	require.NoDirExists(t, j.Room())
	require.Zero(t, j.Status().WaitingBytes)
}

func TestFilesRollByTimeAndEachIsInTheIndex(t *testing.T) {
	t.Parallel()
	dir, at := directory(t)
	j := open(t, journal.Config{To: dir, Roll: 300 * time.Millisecond})
	n := 0
	testkit.Eventually(t, func() bool {
		j.Filter(call("m", capping.UserID(n)))
		n++
		return len(at.entries(t)) >= 3
	}, "three files")
	require.NoError(t, j.Close(t.Context()))
	require.Equal(t, map[string]int{"m": n}, at.messages(t))
	next := uint64(1)
	entries := at.entries(t)
	slices.SortFunc(entries, func(a, b audit.Entry) int { return int(a.Number) - int(b.Number) })
	for i, e := range entries {
		require.EqualValues(t, i+1, e.Number)
		require.Equal(t, next, e.FirstSequence, "no hole between files")
		next = e.LastSequence + 1
	}
}

var _ = rand.N[int]
var _ sync.Mutex
var _ = strings.Contains
var _ = bitmap.Of
