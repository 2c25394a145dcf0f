package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"capper/internal/capping/redisstore/fault"
	"capper/internal/capping/redisstore/script"
)

// An instance that accepts a loss of records begins a restoration of the partition's live changes (changes to sets by
// API calls). The instance begins the restoration before it creates the partition's sentinel key again. During the
// restoration, every instance stores its live changes in Redis again, and then confirms this. Until the end of the
// restoration, no instance decides about those users of the partition whom a set could suppress.

// These constants are the minimum ages of a restoration of live changes (changes of sets by API calls) before it may
// end.
const (
	// listAfter is the age at which the list of instances is complete, even if Redis had lost the list. By this time,
	// every running instance has sent a heartbeat.
	listAfter = beatEvery + time.Second
	// olderAfter is the age of a restoration at which instances of older versions have stored their live changes again.
	// Instances of older versions do not confirm that they have stored their live changes.
	olderAfter = silentFor
)

// A restorationError is the error of a renewal (read of a live change log) while a restoration is in progress.
type restorationError struct{ partition int }

func (e *restorationError) Error() string {
	return fmt.Sprintf("partition %d: the changes of sets are being restored after an accepted loss", e.partition)
}

// The type "restoration" is this instance's state in the restoration of one partition's live changes (changes by API
// calls). The zero value means that no restoration is in progress in the partition.
type restoration struct {
	token     string
	seen      time.Time // when this instance first read the token
	confirmed bool      // this instance has stored its live changes again and confirmed this
	waitsFor  []string  // the instances that had not confirmed at the latest check
}

// The type "instances" lists the instances of capper that must confirm a restoration of live changes (changes by API
// calls).
type instances struct {
	own   string
	other []string  // ids of the other instances
	older bool      // some instances of older versions run too
	at    time.Time // start time of the heartbeat whose reply contained this list
}

// The method "begin" starts the restoration of live changes (all instances store their live changes again) in the given
// partitions. The method "begin" returns an error for each partition in which no restoration began. The restoration in
// each partition has a separate time limit.
func (l *liveLogs) begin(ctx context.Context, partitions []int) (failed map[int]error) {
	failed = map[int]error{}
	for _, p := range partitions {
		if err := l.beginRestoration(ctx, p); err != nil {
			failed[p] = err
		}
	}
	return failed
}

func (l *liveLogs) beginRestoration(ctx context.Context, p int) error {
	n := l.config.Topology.Route(p)
	if n == nil {
		return fault.ErrNoRoute
	}
	ctx, cancel := context.WithTimeout(ctx, n.AttemptTime())
	defer cancel()
	token := newLiveName() + newLiveName()
	if err := script.LiveBegin(ctx, l.config.Scripts.Live, n.Client(), l.config.Prefixes[p], liveTTL, newLiveName(),
		newLiveName(), token); err != nil {
		return fmt.Errorf("node %s: %w", n.Addr(), err)
	}
	return nil
}

// If this instance has confirmed a restoration of the partition's live changes (changes by API calls), and the
// restoration is still in progress, the method "restoring" returns an error.
func (l *liveLog) restoring(p int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.restored.confirmed {
		return nil
	}
	return &restorationError{p}
}

// The method "sees" stores the restoration token (id of a restoration) from the live change log. The token "" means
// that no restoration is in progress. The result of "sees" is true if this instance must still store its live changes
// (changes by API calls) again and confirm this.
func (l *liveLog) sees(token string) (confirm bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.restored.token != token {
		l.restored = restoration{token: token}
		if token != "" {
			l.restored.seen = time.Now()
		}
	}
	return token != "" && !l.restored.confirmed
}

// The method "confirm" records in Redis that this instance has stored all its live changes (changes by API calls) in
// the partition again.
func (l *liveLogs) confirm(ctx context.Context, p int, token string) error {
	n := l.config.Topology.Route(p)
	if n == nil {
		return fault.ErrNoRoute
	}
	done, err := script.LiveConfirm(ctx, l.config.Scripts.Live, n.Client(), l.config.Prefixes[p], token,
		l.config.Instances().own)
	if err != nil {
		return err
	}
	log := &l.logs[p]
	log.mu.Lock()
	defer log.mu.Unlock()
	if log.restored.token == token {
		log.restored.confirmed = done
	}
	return nil
}

// endRestorations ends the restorations of live changes (changes by API calls) that every instance has confirmed.
func (l *liveLogs) endRestorations() {
	for p := range l.logs {
		log := &l.logs[p]
		log.mu.Lock()
		state := log.restored
		log.mu.Unlock()
		if !state.confirmed {
			continue
		}
		ended, waitsFor, err := l.endRestoration(p, &state)
		if err != nil {
			continue // the topology reports the server's fault
		}
		log.mu.Lock()
		if log.restored.token == state.token {
			if log.restored.waitsFor = waitsFor; ended {
				log.restored = restoration{}
			}
		}
		log.mu.Unlock()
		if ended {
			l.renewSoon(p)
		}
	}
}

func (l *liveLogs) endRestoration(p int, state *restoration) (ended bool, waitsFor []string, err error) {
	all := l.config.Instances()
	age := all.at.Sub(state.seen)
	n := l.config.Topology.Route(p)
	switch {
	case n == nil:
		return false, nil, fault.ErrNoRoute
	case age < listAfter:
		return false, []string{"the next heartbeats"}, nil
	case all.older && age < olderAfter:
		return false, []string{"instances of an older version"}, nil
	}
	ctx, cancel := context.WithTimeout(l.ctx, n.AttemptTime())
	defer cancel()
	return script.LiveEnd(ctx, l.config.Scripts.Live, n.Client(), l.config.Prefixes[p], state.token,
		append([]string{all.own}, all.other...))
}

// The method "restorations" returns a text for Health about the present restorations of live changes (changes by API
// calls), or "" if there are none.
func (l *liveLogs) restorations() string {
	n, waits := 0, []string{}
	for p := range l.logs {
		log := &l.logs[p]
		log.mu.Lock()
		if log.restored.token != "" {
			n++
			waits = append(waits, log.restored.waitsFor...)
		}
		log.mu.Unlock()
	}
	if n == 0 {
		return ""
	}
	text := fmt.Sprintf("%d of %d partitions: the changes of sets are being restored after an accepted loss", n,
		len(l.logs))
	slices.Sort(waits)
	if waits = slices.Compact(waits); len(waits) > 0 {
		text += ": waiting for " + strings.Join(waits, ", ")
	}
	return text
}

// isRestoration reports whether the error or one of its causes is a restorationError.
func isRestoration(err error) bool {
	var under *restorationError
	return errors.As(err, &under)
}
