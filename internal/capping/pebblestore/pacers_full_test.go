package pebblestore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"capper/internal/pacing"
	"capper/internal/pacing/pacingtest"
	"capper/internal/testkit"
)

// someAsk returns an ask for one of several pacers, sometimes with a repeated request.
func someAsk() *pacing.Ask {
	targets := []pacing.Target{
		{Pacer: "sms", Limits: []pacing.Limit{{Max: 100, Window: time.Second}, {Max: 2000, Window: time.Hour}}},
		{Pacer: "carrier", Limits: []pacing.Limit{{Max: 1, Window: 4 * time.Millisecond}}},
		{Pacer: "fcm", Limits: []pacing.Limit{{Max: 600_000, Window: time.Minute}}},
		{Pacer: "campaign", Message: fmt.Sprintf("%012x", rand.IntN(5)),
			Limits: []pacing.Limit{{Max: 500, Window: time.Second}}},
	}
	rand.Shuffle(len(targets), func(i, k int) { targets[i], targets[k] = targets[k], targets[i] })
	ask := &pacing.Ask{
		Targets: targets[:1+rand.IntN(2)], Permits: 1 + rand.IntN(1<<rand.IntN(8)),
		MaxWait: []time.Duration{0, time.Second, time.Minute}[rand.IntN(3)],
	}
	if rand.IntN(2) == 0 {
		ask.Request = requestFor(ask)
	}
	return ask
}

// requestFor returns one of a few requests for the ask.
func requestFor(ask *pacing.Ask) (r pacing.Request) {
	sum := ask.Fingerprint()
	copy(r[:], sum[:])
	r[15] = byte(1 + rand.IntN(4))
	return r
}

// requireReplayed repeats the ask and checks that the store returns the earlier grant.
func requireReplayed(t *testing.T, s *Store, oracle *pacingtest.Oracle, a granted) {
	t.Helper()
	grant, err := s.TakePermits(context.Background(), &a.Ask)
	require.NoError(t, err)
	if grant.At < a.Grant.At.Add(a.Ask.MaxWait+pacing.RememberFor) {
		require.True(t, grant.Replayed)
		require.Equal(t, a.Grant.Granted, grant.Granted)
		oracle.Add(&a.Ask, &grant)
	}
}

// requireGoesOn opens a store on the disk and checks that new permits respect the earlier grants.
func requireGoesOn(t *testing.T, disk vfs.FS, before []granted) {
	t.Helper()
	s := reopen(t, Config{Path: "/db", fs: disk})
	oracle := pacingtest.NewOracle()
	for _, a := range before {
		oracle.Add(&a.Ask, &a.Grant)
	}
	for range 100 {
		ask := someAsk()
		ask.Request = pacing.Request{}
		grant, err := s.TakePermits(context.Background(), ask)
		require.NoError(t, err)
		oracle.Add(ask, &grant)
	}
	for _, a := range before {
		if a.Ask.Request != (pacing.Request{}) && a.Grant.Granted > 0 {
			requireReplayed(t, s, oracle, a)
		}
	}
	require.Empty(t, oracle.Faults())
	require.NoError(t, s.Close())
}

// TestFullDiskPacing fills the disk during calls. The store must be out of service, and must have every
// answered grant after the disk has space.
func TestFullDiskPacing(t *testing.T) {
	t.Parallel()
	for size := int64(1000); size < 1<<18; size += size + 9_997 {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			t.Parallel()
			disk := vfs.NewCrashableMem()
			small := newSmallDisk(disk, 1<<40)
			s := reopen(t, Config{Path: "/db", fs: small})
			small.left.Store(size)
			var mu sync.Mutex
			var told []granted
			var calls sync.WaitGroup
			for range 3 {
				calls.Go(func() {
					for s.db.Broken() == nil {
						ask := someAsk()
						if grant, err := s.TakePermits(context.Background(), ask); err == nil {
							mu.Lock()
							told = append(told, granted{*ask, grant})
							mu.Unlock()
						}
					}
				})
			}
			calls.Wait()
			requireDown(t, s, "no space left on device")
			_, err := s.TakePermits(context.Background(), someAsk())
			require.ErrorContains(t, err, "out of service until capper restarts")
			require.ErrorContains(t, s.ForgetPacer(context.Background(), "sms", ""),
				"out of service until capper restarts")
			require.NoError(t, s.Close())
			requireGoesOn(t, disk.CrashClone(vfs.CrashCloneCfg{}), told)
		})
	}
}

// TestReplayWaitsForTheDisk stalls the disk while a request is granted. A repeated request must not be
// answered before the grant is durable.
func TestReplayWaitsForTheDisk(t *testing.T) {
	t.Parallel()
	disk := &stallableDisk{FS: vfs.NewMem(), released: make(chan struct{})}
	s := reopen(t, Config{Path: "/db", fs: disk, SweepInterval: time.Hour})
	ask := hundred(7, 0)
	ask.Request = pacing.Request{1}
	disk.stalled.Store(true)
	grants := make(chan pacing.Grant, 2)
	for range cap(grants) {
		go func() {
			grant, err := s.TakePermits(context.Background(), ask)
			if err != nil {
				t.Error(err)
			}
			grants <- grant
		}()
	}
	testkit.Eventually(t, func() bool { return disk.waiting.Load() > 0 })
	late, end := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer end()
	_, err := s.TakePermits(late, ask)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Empty(t, grants)
	close(disk.released)
	one, other := testkit.Receive(t, grants), testkit.Receive(t, grants)
	require.Equal(t, 7, one.Granted)
	require.Equal(t, 7, other.Granted)
	require.NotEqual(t, one.Replayed, other.Replayed)
	require.NoError(t, s.Close())
}

// stallableDisk is a disk that does not sync logs while it is stalled.
type stallableDisk struct {
	vfs.FS
	stalled  atomic.Bool
	waiting  atomic.Int64
	released chan struct{}
}

func (d *stallableDisk) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := d.FS.Create(name, category)
	if err != nil || !strings.HasSuffix(name, ".log") {
		return f, err
	}
	return &stallableFile{f, d}, nil
}

type stallableFile struct {
	vfs.File
	disk *stallableDisk
}

func (f *stallableFile) SyncData() error {
	if f.disk.stalled.Load() {
		f.disk.waiting.Add(1)
		<-f.disk.released
	}
	return f.File.SyncData()
}

func (f *stallableFile) Sync() error { return f.SyncData() }
