package journal_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/audit"
	"capper/internal/audit/journal"
	"capper/internal/capping"
	"capper/internal/objects"
	"capper/internal/objects/objectstest"
	"capper/internal/objects/s3test"
	"capper/internal/testkit"
)

// Instances that write one place, each from many goroutines: every record is there once.
func TestInstancesWriteOnePlace(t *testing.T) {
	t.Parallel()
	objectstest.OnEveryLocation(t, func(t *testing.T, name string, at objects.Location) {
		spool := t.TempDir()
		var instances []*journal.Journal
		for range 3 { // two of them with one spool
			instances = append(instances, open(t, config(name, spool)))
		}
		var callers sync.WaitGroup
		for i, j := range instances {
			for c := range 4 {
				callers.Go(func() {
					for n := range 50 {
						j.Filter(call(fmt.Sprintf("%d-%d-%d", i, c, n), capping.UserID(n)))
					}
				})
			}
		}
		callers.Wait()
		for _, j := range instances {
			require.NoError(t, j.Close(t.Context()))
		}
		counts := place{at}.messages(t)
		require.Len(t, counts, 3*4*50)
		for message, n := range counts {
			require.Equal(t, 1, n, message)
		}
		left, err := os.ReadDir(spool)
		require.NoError(t, err)
		require.Empty(t, left)
	})
}

// config is that of a journal to a location.
func config(to, spool string) journal.Config {
	if objects.IsURL(to) {
		return journal.Config{To: to, Spool: spool}
	}
	return journal.Config{To: to}
}

// What a killed instance left is brought to its place by who starts next, whatever was cut off;
// the room of one that lives is left alone.
func TestFilesOfADeadInstanceAreBroughtToTheirPlace(t *testing.T) {
	t.Parallel()
	dir, at := directory(t)
	living := open(t, journal.Config{To: dir})
	living.Filter(call("living", 1))
	require.NoError(t, living.Flush(t.Context()))

	const dead, damagedOne = "00112233aabbccdd", "ffff2233aabbccdd"
	whole, torn := leftBy(t, dead)
	damaged, _ := leftBy(t, damagedOne)
	damaged[len(damaged)-20] ^= 1
	room := filepath.Join(dir, "open", dead)
	require.NoError(t, os.MkdirAll(room, 0o755))
	for name, file := range map[string][]byte{
		"lock": nil, "7.audit": torn, "8.audit": whole[:5], "9.audit": nil,
		"c9.yaml": audit.SealPolicy([]byte("limits: {}\n")),
	} {
		require.NoError(t, os.WriteFile(filepath.Join(room, name), file, 0o644))
	}
	next := open(t, journal.Config{To: dir})
	testkit.Eventually(t, func() bool { return len(at.entries(t)) == 1 }, "the torn file")
	require.Equal(t, map[string]int{"first": 1, "second": 1}, at.messages(t))
	entry := at.entries(t)[0]
	require.Equal(t, []any{dead, uint64(7), uint64(91), uint64(92), true}, []any{entry.Instance, entry.Number,
		entry.FirstSequence, entry.LastSequence, entry.Recovered})
	testkit.Eventually(t, func() bool { _, err := os.Stat(room); return os.IsNotExist(err) }, "the room is gone")
	_, err := at.Read(t.Context(), audit.PolicyKey("c9"), 1<<10)
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(living.Room(), "1.audit"), "it lives")
	require.NoError(t, next.Close(t.Context()))

	room = filepath.Join(dir, "open", damagedOne)
	require.NoError(t, os.MkdirAll(room, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(room, "lock"), nil, 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(room, "7.audit"), damaged, 0o644))
	log := new(testkit.Log)
	cfg := journal.Config{To: dir, Logger: log.Logger()}
	open(t, cfg)
	testkit.Eventually(t, func() bool { return at.messages(t)["first"] == 2 }, "what is before the damage")
	require.Equal(t, 1, at.messages(t)["second"])
	kept, err := os.ReadFile(filepath.Join(room, "7.audit.damaged"))
	require.NoError(t, err)
	require.Equal(t, damaged, kept)
	require.Contains(t, log.String(), "damaged")
}

// leftBy is a file of two records, and the same with a third that is not whole.
func leftBy(t *testing.T, instance string) (whole, torn []byte) {
	e, whole := audit.NewEncoder(nil, audit.Header{Instance: instance, Number: 7, Begun: 1000, First: 91})
	for _, message := range []string{"first", "second"} {
		r, _ := call(message)
		r.Kind = audit.Filter
		var err error
		whole, _, err = e.AppendRecord(whole, r)
		require.NoError(t, err)
	}
	longer, _, err := e.AppendRecord(whole[:len(whole):len(whole)], &audit.Record{Kind: audit.Release, At: 2000})
	require.NoError(t, err)
	return whole, longer[:len(longer)-3]
}

// breakable is S3 behind a line that can be cut: requests fail, or hang.
type breakable struct{ fails, hangs atomic.Bool }

func (b *breakable) wrap(server http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if b.hangs.Load() {
			<-r.Context().Done()
			return
		}
		if b.fails.Load() {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		server.ServeHTTP(w, r)
	})
}

// While S3 cannot be had records wait, and nothing is lost; when it is there again all come to their place.
func TestRecordsWaitWhileS3IsAway(t *testing.T) {
	t.Parallel()
	line := &breakable{}
	to := "s3://" + s3test.Bucket(t) + "/audit"
	cfg := journal.Config{To: to, Spool: t.TempDir(), Roll: 100 * time.Millisecond,
		S3: objects.S3Config{Endpoint: s3test.Proxy(t, line.wrap), Stall: time.Second}}
	at := place{objectstest.Open(t, to)}
	line.fails.Store(true)
	j := open(t, cfg)
	j.SetPolicy(t.Context(), "c1", []byte("limits: {}\n"))
	for n := range 3 {
		before := j.Status().WaitingFiles
		j.Filter(call(fmt.Sprint("away-", n), 1))
		testkit.Eventually(t, func() bool { return j.Status().WaitingFiles > before }, "a file waits")
	}
	require.NoError(t, j.Erase(t.Context(), 42), "it is kept here")
	testkit.Eventually(t, func() bool { return j.Status().State == "behind" }, "it says so")
	status := j.Status()
	require.NotEmpty(t, status.Error)
	require.Positive(t, status.WaitingBytes)
	require.Zero(t, status.Lost)
	line.hangs.Store(true)
	began := time.Now()
	j.Filter(call("hanging", 1))
	require.NoError(t, j.Flush(t.Context()))
	require.Less(t, time.Since(began), 30*time.Second, "a place that hangs holds up nobody")

	line.hangs.Store(false)
	line.fails.Store(false)
	testkit.Eventually(t, func() bool { return len(at.messages(t)) == 4 }, "all of them")
	_, err := at.Read(t.Context(), audit.PolicyKey("c1"), 1<<10)
	require.NoError(t, err)
	list, err := at.List(t.Context(), audit.ErasedPrefix)
	require.NoError(t, err)
	require.Len(t, list, 1)
	var erasure audit.Erasure
	body, err := at.Read(t.Context(), list[0].Key, 1<<10)
	require.NoError(t, err)
	require.NoError(t, audit.Unseal(body, &erasure))
	require.Equal(t, []capping.UserID{42}, erasure.Users)
	testkit.Eventually(t, func() bool {
		s := j.Status()
		return s.State == "ok" && s.WaitingBytes == 0 &&
			s.WaitingFiles == 0
	}, "ok again")
}

// A service that ends while S3 is away leaves its files to the next one.
func TestTheNextStartUploadsWhatS3WasAwayFor(t *testing.T) {
	t.Parallel()
	to, spool := "s3://"+s3test.Bucket(t)+"/audit", t.TempDir()
	j := open(t, journal.Config{To: to, Spool: spool, S3: objects.S3Config{Endpoint: "http://127.0.0.1:1"}})
	j.SetPolicy(t.Context(), "c1", []byte("limits: {}\n"))
	j.Filter(call("kept", 1))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	require.NoError(t, j.Close(ctx))
	open(t, journal.Config{To: to, Spool: spool})
	at := place{objectstest.Open(t, to)}
	testkit.Eventually(t, func() bool { return at.messages(t)["kept"] == 1 }, "it is there")
	_, err := at.Read(t.Context(), audit.PolicyKey("c1"), 1<<10)
	require.NoError(t, err)
}

// TestTheIndexNamesOnlyStoredFiles checks that no index entry exists while its file cannot be stored.
func TestTheIndexNamesOnlyStoredFiles(t *testing.T) {
	t.Parallel()
	dir, at := directory(t)
	inTheWay := filepath.Join(dir, "records")
	require.NoError(t, os.MkdirAll(dir, 0o755))
	require.NoError(t, os.WriteFile(inTheWay, nil, 0o644))
	j := open(t, journal.Config{To: dir, Roll: 100 * time.Millisecond})
	j.Filter(call("kept", 1))
	testkit.Eventually(t, func() bool { return j.Status().WaitingFiles == 1 && j.Status().Error != "" }, "it fails")
	require.Empty(t, at.entries(t))
	require.NoError(t, os.Remove(inTheWay))
	testkit.Eventually(t, func() bool { return at.messages(t)["kept"] == 1 }, "it is there")
}

// Where nothing can be written records are kept in memory, then lost; the loss is counted, and written
// as a gap when the disk is there again.
func TestALossIsCountedAndWritten(t *testing.T) {
	t.Parallel()
	dir, at := directory(t)
	require.NoError(t, os.WriteFile(dir, []byte("in the way"), 0o644))
	const bound = 1 << 20
	j := open(t, journal.Config{To: dir, MaxWaiting: bound})
	require.Error(t, j.Erase(t.Context(), 42), "it can be kept nowhere")
	users := ids(100_000, func(i int) uint32 { return uint32(i) * 5 })
	const calls = 20
	for range calls {
		j.Filter(call("many", users...))
	}
	require.Error(t, j.Flush(t.Context()))
	status := j.Status()
	require.Equal(t, "losing", status.State)
	require.NotEmpty(t, status.Error)
	require.EqualValues(t, calls, status.Records+status.Lost)
	require.Positive(t, status.Records)
	require.Positive(t, status.Lost)

	require.NoError(t, os.Remove(dir))
	require.NoError(t, j.Flush(t.Context()))
	j.Filter(call("after", 7))
	require.NoError(t, j.Flush(t.Context()))
	testkit.Eventually(t, func() bool { return j.Status().State == "ok" }, "ok again")
	require.NoError(t, j.Close(t.Context()))
	counts := at.messages(t)
	require.Equal(t, map[string]int{"many": int(status.Records), "after": 1}, counts)
	entry := at.entries(t)[0]
	require.Equal(t, []uint64{status.Lost, calls + 1}, []uint64{entry.Lost, entry.LastSequence})
}

// A disk that is full takes nothing of a record, and all of it when there is room again.
func TestAFullDiskHoldsRecordsUp(t *testing.T) {
	t.Parallel()
	dir, at := directory(t)
	j := open(t, journal.Config{To: dir})
	require.NoError(t, os.MkdirAll(j.Room(), 0o755))
	full := filepath.Join(j.Room(), "1.audit")
	require.NoError(t, os.Symlink("/dev/full", full))
	j.Filter(call("held up", 1, 2, 3))
	require.ErrorContains(t, j.Flush(t.Context()), "no space left on device")
	j.Filter(call("held up, too", 1, 2, 3))
	require.Error(t, j.Flush(t.Context()))
	status := j.Status()
	require.Equal(t, []any{"behind", uint64(2), uint64(0)}, []any{status.State, status.Records, status.Lost})
	require.Contains(t, status.Error, "no space left on device")
	require.NoError(t, os.Remove(full))
	require.NoError(t, j.Flush(t.Context()))
	require.NoError(t, j.Close(t.Context()))
	require.Equal(t, map[string]int{"held up": 1, "held up, too": 1}, at.messages(t))
}

// A file that somebody takes away is lost; the next ones come to their place all the same.
func TestAFileThatIsTakenAwayHoldsNoOtherUp(t *testing.T) {
	t.Parallel()
	dir, at := directory(t)
	log := new(testkit.Log)
	j := open(t, journal.Config{To: dir, Roll: 6 * time.Second, Logger: log.Logger()})
	j.Filter(call("taken", 1))
	require.NoError(t, j.Flush(t.Context()))
	require.NoError(t, os.Remove(filepath.Join(j.Room(), "1.audit")))
	testkit.Eventually(t, func() bool { s := j.Status(); return s.WaitingBytes == 0 && s.WaitingFiles == 0 },
		"it is given up")
	require.Contains(t, log.String(), "disappeared before its upload")
	j.Filter(call("next", 1))
	require.NoError(t, j.Close(t.Context()))
	require.Equal(t, map[string]int{"next": 1}, at.messages(t))
}
