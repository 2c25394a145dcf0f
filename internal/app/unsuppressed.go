package app

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"capper/internal/capping"
	"capper/internal/config"
)

// The type "unsuppressed" remembers the suppressions that reloads removed, and the times of these reloads. A
// suppression denies sends to the users of a set. The process remembers removed suppressions only in memory, because
// the service does not know earlier configurations after a start.
type unsuppressed struct {
	mu    sync.Mutex
	until map[string]time.Time // by set: time at which a reload removed the suppression of the set
}

// At a reload, the method note compares the previous policy ("was") with the new policy ("is"), and returns the
// suppressions that the new policy removes.
func (u *unsuppressed) note(was, is *capping.Policy, now time.Time) []config.Lost {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.until == nil {
		u.until = map[string]time.Time{}
	}
	lost := config.LostSuppression(was, is)
	for _, l := range lost {
		u.until[l.Set] = now
	}
	return lost
}

// The method "problems" describes, for the status, the sets that are no longer suppressed. The method "problems" lists
// a set as long as the configuration acknowledges that the set is no longer suppressed.
func (u *unsuppressed) problems(said config.Acknowledged) (list []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	warn := func(key, how string, sets []string) {
		for _, set := range slices.Sorted(slices.Values(sets)) {
			since := "before this start"
			if at, ok := u.until[set]; ok {
				since = "until " + at.UTC().Format(time.RFC3339)
			}
			list = append(list, fmt.Sprintf("%s: %s was %s %s: take it out of the list once that is settled", key, set,
				how, since))
		}
	}
	warn("no_longer_suppressed", "suppressed", said.Dropped)
	warn("less_suppressed", "suppressed for more sends", said.Narrowed)
	return list
}
