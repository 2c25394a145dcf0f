package capping

import (
	"errors"
	"fmt"
)

// Rule is a limit as it stands for one call. Either Hold is set (rolling), or
// Start and Until are (calendar).
type Rule struct {
	Max      int        // at most so many entries may count
	Hold     int64      // rolling: milliseconds for which an entry counts
	Start    Instant    // calendar: the period's first instant
	Until    Instant    // calendar: the next period's first instant
	Channels ChannelSet // entries that count; zero: all
	Shadow   bool       // it denies nobody: Verdict.Shadow tells whom it would have denied
}

// check reports what makes r no rule: what the scripts could not be told, or
// would read as another rule.
func (r *Rule) check() error {
	switch {
	case r.Max < 0 || r.Max > LogBound:
		return fmt.Errorf("max: must be 0 to %d, got %d", LogBound, r.Max)
	case r.Hold < 0 || r.Hold > MaxRetention.Milliseconds():
		return fmt.Errorf("hold: must be 0 to %d ms, got %d", MaxRetention.Milliseconds(), r.Hold)
	case r.Until < r.Start || r.Until > Never:
		return fmt.Errorf("period: must not end before it starts, got %d to %d", r.Start, r.Until)
	case (r.Hold > 0) == (r.Until > 0):
		return errors.New("rule must have either a rolling window or a calendar period")
	}
	return nil
}

// After is the instant that entries must be later than to count at now.
func (r *Rule) After(now Instant) Instant {
	if r.Hold > 0 {
		return now - Instant(r.Hold)
	}
	return r.Start - 1
}

// freesAt is when an entry stamped at stops counting.
func (r *Rule) freesAt(at Instant) Instant { return max(at+Instant(r.Hold), r.Until) }

// Count is how many entries of the log count at now.
func (r *Rule) Count(log Log, now Instant) (n int) {
	after := r.After(now)
	for i := log.Len() - 1; i >= 0 && log.At(i) > after; i-- {
		if r.Channels.Has(log.Channel(i)) {
			n++
		}
	}
	return n
}

// FreesAt is the instant at which the rule has a free slot: 0 when it has one
// at now, Never when Max is 0. A log in time order holds Max or more entries
// of the window exactly when its Max-th newest matching entry is in it.
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

// maxth is the index of the Max-th newest entry that matches, or -1.
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
