//go:build storms

package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/client/api"
	"capper/internal/testcluster"
	"capper/internal/testkit"
)

// stormPacers are what callers take from, all at once; ledger counts what it gives.
const stormPacers = `{default: {daily: 1}}
pacers:
  provider: {limits: [{max: 100, window: 1s}, {max: 3000, window: 1m}], max_wait: 10m}
  carrier: {rate: 250/s, max_wait: 10m}
  ledger: {limits: [{max: 10000000, window: 744h}], max_wait: 10m}
`

// Services are killed while callers take permits, and started again. As far as
// answers tell, no window holds more than its limit; and what was granted was taken
// once, by callers who repeat each request until one of the services answers it.
func TestServicesThatGivePermitsAreKilled(t *testing.T) {
	t.Parallel()
	redis := testcluster.Single(t, testcluster.Options{}).Addrs[0]
	for name, files := range map[string]func(t *testing.T) []string{
		"two on one Redis": func(t *testing.T) []string {
			return []string{onServer(t, redis, "{push: 1}", stormPacers), onServer(t, redis, "{push: 1}", stormPacers)}
		},
		"embedded": func(t *testing.T) []string { return []string{configure(t, stormPacers)} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newPermitStorm(t, files(t))
			defer s.end()
			for i := range 6 {
				s.running.Go(func() { s.call(rand.New(rand.NewPCG(1, uint64(i))), i) })
			}
			for round := range 3 {
				s.grants(t, 500)
				s.restart(t, round%len(s.files))
			}
			s.grants(t, 500)
			s.end()
			s.judge(t)
		})
	}
}

// permitStorm is callers of services that are killed.
type permitStorm struct {
	files    []string // configurations of the services
	services []atomic.Pointer[process]
	running  sync.WaitGroup
	stop     atomic.Bool

	mu            sync.Mutex
	slots         []seenSlot
	granted, lost int
	faults        []error
}

// seenSlot is permits of a slot, as precisely as answers tell when it is.
type seenSlot struct {
	earliest, latest time.Time
	permits          int
}

func newPermitStorm(t *testing.T, files []string) *permitStorm {
	s := &permitStorm{files: files, services: make([]atomic.Pointer[process], len(files))}
	for i, file := range files {
		s.services[i].Store(serve(t, file))
	}
	return s
}

func (s *permitStorm) end() {
	s.stop.Store(true)
	s.running.Wait()
}

// restart kills a service with callers in it, and starts it again.
func (s *permitStorm) restart(t *testing.T, i int) {
	t.Helper()
	s.services[i].Load().signal(syscall.SIGKILL)
	s.services[i].Store(serve(t, s.files[i]))
}

func (s *permitStorm) grants(t *testing.T, more int) {
	t.Helper()
	granted := func() int {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.granted
	}
	had := granted()
	for want := had + more; had < want; had = granted() {
		testkit.Eventually(t, func() bool { return granted() > had })
	}
}

// call asks for permits till the end, by requests that are repeated until they are
// answered.
func (s *permitStorm) call(rng *rand.Rand, caller int) {
	breath := time.NewTicker(2 * time.Millisecond) // callers that fill the machine would hide what the services do
	defer breath.Stop()
	for n := 0; !s.stop.Load(); n++ {
		<-breath.C
		request := api.PermitsRequest{
			Pacers: []string{"provider", "carrier", "ledger"}, Permits: []int{1, 10, 40}[rng.IntN(3)],
			MaxWait: api.Wait([]time.Duration{0, 10 * time.Minute}[rng.IntN(2)]), RequestID: fmt.Sprintf("%d-%d",
				caller, n),
		}
		first, patience := time.Now(), time.Now().Add(time.Minute)
		for {
			sent := time.Now()
			got, err := s.ask(rng.IntN(len(s.services)), request)
			if err == nil {
				s.keep(got, first, sent, time.Now())
				break
			}
			if s.failed(err, time.Now().After(patience)) {
				return
			}
			<-breath.C
		}
	}
}

// ask asks a service for permits.
func (s *permitStorm) ask(service int, request api.PermitsRequest) (got api.Permits, err error) {
	err = post(s.services[service].Load().url+"/v1/permits", request, &got)
	return got, err
}

func (s *permitStorm) failed(err error, late bool) (end bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost++
	if late {
		s.faults = append(s.faults, err)
	}
	return late
}

// keep notes when the slots are: the service's now was between question and answer. Of
// an answer that is given again, waits that are over are 0.
func (s *permitStorm) keep(got api.Permits, first, sent, received time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.granted += got.Granted
	for _, slot := range got.Slots {
		for i := range slot.Permits {
			one := seenSlot{permits: slot.Permits}
			wait := time.Duration(slot.WaitMS)
			if slot.EveryMS > 0 {
				one.permits, wait = 1, wait+time.Duration(i)*time.Duration(slot.EveryMS)
			}
			one.earliest, one.latest = sent.Add(wait), received.Add(wait)
			if got.Replayed && wait == 0 {
				one.earliest = first
			}
			if s.slots = append(s.slots, one); slot.EveryMS == 0 {
				break
			}
		}
	}
}

// judge demands that no window surely holds more than its limit, and that the ledger
// has what was granted.
func (s *permitStorm) judge(t *testing.T) {
	t.Helper()
	require.Empty(t, s.faults)
	slices.SortFunc(s.slots, func(a, b seenSlot) int { return a.earliest.Compare(b.earliest) })
	require.LessOrEqual(t, s.fullest(time.Second), 100)
	require.LessOrEqual(t, s.fullest(time.Minute), 3000)
	require.LessOrEqual(t, s.fullest(4*time.Millisecond), 1)
	got, err := s.ask(0, api.PermitsRequest{Pacers: []string{"ledger"}})
	require.NoError(t, err)
	require.Equal(t, s.granted, *got.Pacers[0].Used, "each was taken once")
	require.NotZero(t, s.lost)
	t.Logf("%d permits granted, %d answers lost, up to %d in a second", s.granted, s.lost, s.fullest(time.Second))
}

// fullest is how many permits a window of that length holds, of those that surely are
// within one.
func (s *permitStorm) fullest(window time.Duration) (most int) {
	for i, first := range s.slots {
		permits := 0
		for _, other := range s.slots[i:] {
			if !other.earliest.Before(first.earliest.Add(window)) {
				break
			}
			if other.latest.Before(first.earliest.Add(window)) {
				permits += other.permits
			}
		}
		most = max(most, permits)
	}
	return most
}
