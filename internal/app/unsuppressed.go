package app

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"capper/internal/capping"
	"capper/internal/config"
)

// unsuppressed remembers until when sets were suppressed that reloads took away from suppression. It is
// of this process alone: a start knows nothing of the configuration before it.
type unsuppressed struct {
	mu    sync.Mutex
	until map[string]time.Time // by set
}

// note compares the policy in force with the one that replaces it at now, and returns what it loses.
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

// problems is what a status says as long as the configuration says that sets are suppressed no longer, or less.
func (u *unsuppressed) problems(said config.Acknowledged) (list []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	tell := func(key, how string, sets []string) {
		for _, set := range slices.Sorted(slices.Values(sets)) {
			since := "before this start"
			if at, ok := u.until[set]; ok {
				since = "until " + at.UTC().Format(time.RFC3339)
			}
			list = append(list, fmt.Sprintf("%s: %s was %s %s: take it out of the list once that is settled", key, set,
				how, since))
		}
	}
	tell("no_longer_suppressed", "suppressed", said.Dropped)
	tell("less_suppressed", "suppressed for more sends", said.Narrowed)
	return list
}
