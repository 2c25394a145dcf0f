package redisstore

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"capper/internal/capping"
	"capper/internal/capping/redisstore/dispatch"
	"capper/internal/capping/redisstore/fault"
	"capper/internal/capping/redisstore/topology"
)

// The constant "remembered" is the time for which Health reports a failed call. The checks of the servers (package
// topology) do not notice some faults, such as a full server.
const remembered = 30 * time.Second

// The type "trouble" keeps the error of the latest call that left users undecided, so that Health can report the error.
type trouble struct {
	mu  sync.Mutex
	err error
	at  time.Time
}

// The method "note" stores the error of a call that left users undecided. The method "note" ignores calls whose callers
// have left, and a deadline that passed without another fault, because the caller chose the deadline.
func (t *trouble) note(f *dispatch.Faults, err error) {
	if err == nil || f.Users[fault.Gone] > 0 || f.Users[fault.Deadline] > 0 && len(f.Attempts) == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.err, t.at = err, time.Now()
}

func (t *trouble) latest() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err == nil || time.Since(t.at) > remembered {
		return nil
	}
	return fmt.Errorf("error within the last %s: %w", capping.Span(remembered), t.err)
}

// Health returns the result of the latest topology refresh, at most a few seconds old. If errors in the last 30 s left
// users undecided, Health also reports the latest of these errors.
func (s *Store) Health(context.Context) capping.Health {
	seen := s.fleet.seen.Load()
	h := capping.Health{
		Kind: "redis", State: "ok", Fleet: &seen.fleet,
		Warnings: slices.Concat(s.top.Warnings(), s.fleet.warnings, s.fleet.remarks(seen), s.acceptedWarnings()),
	}
	if err := s.halted(); err != nil {
		h.State, h.Error = "down", err.Error()
		return h
	}
	h.State, h.Error = s.top.State()
	lost, all := s.lost(seen)
	switch {
	case all:
		h.State = "down"
	case len(lost) > 0 && h.State == "ok":
		h.State = "degraded"
	}
	if h.Error != "" {
		lost = append(lost, h.Error)
	}
	h.Error = strings.Join(lost, "; ")
	if err := s.trouble.latest(); err != nil && h.State == "ok" {
		h.State, h.Error = "degraded", err.Error()
	}
	return h
}

// The method "lost" returns texts about missing or possibly incomplete data of the store. The result "all" of the
// method "lost" is true if all partitions with users are in quarantine (no decisions until an operator accepts the
// loss).
func (s *Store) lost(seen *sight) (lost []string, all bool) {
	if seen.gone != nil {
		lost = append(lost, seen.gone.Error())
	}
	if err := s.fleet.silence(); err != nil {
		lost = append(lost, err.Error())
	}
	counts, whys, barred := map[string]int{}, map[string]*topology.Bar{}, 0
	s.eachBar(func(b *topology.Bar) {
		barred++
		counts[b.Group()]++
		whys[b.Group()] = b
	})
	for _, group := range slices.Sorted(maps.Keys(whys)) {
		lost = append(lost, fmt.Sprintf("%d of %d partitions: %v", counts[group], s.keyspace.Partitions, whys[group]))
	}
	if text := s.live.restorations(); text != "" {
		lost = append(lost, text)
	}
	return lost, barred == s.keyspace.Partitions
}

// eachBar calls the function "it" for every partition with users in quarantine (no decisions until an operator accepts
// the loss).
func (s *Store) eachBar(it func(*topology.Bar)) {
	for p := range s.keyspace.Partitions {
		if b := s.top.Bar(p); b != nil {
			it(b)
		}
	}
}

// barredPartitions returns, for each cause, the number of partitions with users in quarantine (no decisions until an
// operator accepts the loss).
func (s *Store) barredPartitions() map[string]int {
	counts := map[string]int{}
	s.eachBar(func(b *topology.Bar) { counts[b.Reason]++ })
	return counts
}
