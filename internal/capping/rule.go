package capping

import (
	"errors"
	"fmt"
)

// Rule is a limit prepared for the channel and the instant of one call. A Rule has either Hold (for a rolling window),
// or Start and Until (for a calendar period).
type Rule struct {
	Max      int        // the largest number of log entries that may count
	Hold     int64      // rolling window: milliseconds for which a log entry counts
	Start    Instant    // calendar window: the period's first instant
	Until    Instant    // calendar window: the next period's first instant
	Channels ChannelSet // the channels whose log entries count; zero: all channels
	Shadow   bool       // the rule denies nobody; Verdict.Shadow shows the users whom it would have denied
}

// The method "check" returns an error for a rule that the Lua scripts of package redisstore could not represent or
// would misread.
func (r *Rule) check() error {
	switch {
	case r.Max < 0 || r.Max > LogBound:
		return fmt.Errorf("max, the number of sends that a rule allows, must be 0 to %d, got %d", LogBound, r.Max)
	case r.Hold < 0 || r.Hold > MaxRetention.Milliseconds():
		return fmt.Errorf("hold, the length of a rule's rolling window, must be 0 to %d ms, got %d",
			MaxRetention.Milliseconds(), r.Hold)
	case r.Until < r.Start || r.Until > Never:
		return fmt.Errorf(
			"calendar period of a rule must not end before its start, or more than %d ms after 2024-01-01T00:00:00Z, "+
				"got %d to %d", Never, r.Start, r.Until)
	case (r.Hold > 0) == (r.Until > 0):
		return errors.New("rule of a limit must have either a rolling window or a calendar period")
	}
	return nil
}

// The method After returns the latest instant whose log entries are too old to count for the rule. At the instant
// "now", the rule counts only log entries later than the result of After.
func (r *Rule) After(now Instant) Instant {
	if r.Hold > 0 {
		return now - Instant(r.Hold)
	}
	return r.Start - 1
}

// freesAt returns the instant from which a log entry with the time "at" no longer counts for the rule.
func (r *Rule) freesAt(at Instant) Instant { return max(at+Instant(r.Hold), r.Until) }

// The method Count returns the number of log entries that count for the rule at the instant now.
func (r *Rule) Count(log Log, now Instant) (n int) {
	after := r.After(now)
	for i := log.Len() - 1; i >= 0 && log.At(i) > after; i-- {
		if r.Channels.Has(log.Channel(i)) {
			n++
		}
	}
	return n
}

// FreesAt returns the instant at which the rule has a free slot: 0 when a slot is free now, Never when Max is 0. A
// window has Max or more log entries on the rule's channels exactly if the Max-th newest of these entries is in the
// window.
func (r *Rule) FreesAt(log Log, now Instant) Instant {
	if r.Max <= 0 {
		return Never
	}
	i := r.maxth(log)
	if i < 0 || log.At(i) <= r.After(now) {
		return 0
	}
	return r.freesAt(log.At(i))
}

// The method "maxth" returns the index of the Max-th newest log entry on the channels of the rule, or -1 if the log has
// fewer such entries.
func (r *Rule) maxth(log Log) int {
	if r.Channels.All() {
		return max(log.Len()-r.Max, -1)
	}
	left := r.Max
	for i := log.Len() - 1; i >= 0; i-- {
		if r.Channels.Has(log.Channel(i)) {
			if left--; left == 0 {
				return i
			}
		}
	}
	return -1
}
