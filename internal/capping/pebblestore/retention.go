package pebblestore

import (
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"capper/internal/capping"
)

var (
	retentionKey  = []byte("\x00retention")  // retention of the present policy; earlier versions read this key
	retentionsKey = []byte("\x00retentions") // retentions of the policy in force and of earlier policies
)

// The type "retention" holds two times: the time for which a policy keeps sends, and the time until which this policy
// is or was in force.
type retention struct {
	millis int64
	until  capping.Instant
}

// The method "passed" reports whether the retention (storage time of sends) has no effect any more. When a retention
// has passed, every send that was recorded under it is too old for its policy.
func (r retention) passed(now capping.Instant) bool { return r.until+capping.Instant(r.millis) <= now }

// The type "retentions" lists the retentions (times for which sends are kept) that still protect sends from deletion.
// The last element of the list is the retention of the present policy. Each earlier element is a longer retention that
// was in force until an earlier time.
type retentions []retention

const (
	// The stored end of the retention in force is up to retentionLead in the future, so that not every call writes to
	// the database. The stored end of a retention is therefore never too early.
	retentionLead = capping.Instant(time.Hour / time.Millisecond)
	// maxRetentions is the maximum length of the stored list, for the case that an operator often changes the limits.
	maxRetentions = 16
)

// The method "with" returns the new list of retentions for a policy that takes effect now. The argument "millis" of the
// method "with" is the retention of this policy in milliseconds.
func (r retentions) with(millis int64, now capping.Instant) retentions {
	current := retention{millis, now + retentionLead}
	kept := make(retentions, 0, len(r)+1)
	for _, old := range r {
		switch {
		case old.millis <= millis:
			current.until = max(current.until, old.until)
		case !old.passed(now):
			kept = append(kept, old)
		}
	}
	if n := len(kept); n == maxRetentions {
		kept[n-2].until = kept[n-1].until // the longer retention replaces both
		kept = kept[:n-1]
	}
	return append(kept, current)
}

// The method "last" returns the retention of the present policy (time for which sends are kept), or the zero retention
// for an empty list.
func (r retentions) last() retention {
	if len(r) == 0 {
		return retention{}
	}
	return r[len(r)-1]
}

// The method "longest" returns the longest retention (time for which sends are kept) that has not passed. The store may
// delete log entries that are older than the returned retention. If all retentions in the list have passed, "longest"
// returns the last one, which is the retention of the present policy.
func (r retentions) longest(now capping.Instant) retention {
	for _, old := range r {
		if !old.passed(now) {
			return old
		}
	}
	return r.last()
}

// The method "warning" returns a text for operators if the store keeps sends longer than the present policy needs, and
// otherwise "".
func (r retentions) warning(now capping.Instant) string {
	kept, last := r.longest(now), r.last()
	if kept.millis == last.millis {
		return ""
	}
	until := kept.until + capping.Instant(kept.millis)
	return fmt.Sprintf("the limits in force look back %s, but earlier limits looked back %s: sends are kept for the "+
		"longer time until %s",
		span(last.millis), span(kept.millis), until.Time().Format(time.RFC3339))
}

func span(millis int64) string { return capping.Span(time.Duration(millis) * time.Millisecond) }

// inForce reports whether the retention in force equals the argument "millis" (in milliseconds), and whether its stored
// end is far enough in the future. If inForce returns false, the store must write the list of retentions again.
func (r retentions) inForce(millis int64, now capping.Instant) bool {
	last := r.last()
	return last.millis == millis && now < last.until-retentionLead/2
}

// The type notedRetentions holds the store's list of retentions for concurrent use. A read of the list of retentions
// takes one atomic load.
type notedRetentions struct {
	mu    sync.Mutex // protects changes
	noted atomic.Pointer[retentions]
}

func (k *notedRetentions) current() retentions {
	if noted := k.noted.Load(); noted != nil {
		return *noted
	}
	return nil
}

// The method "retain" returns the longest retention (time for which sends are kept) that was recently in force. The
// store may delete log entries that are older than the returned retention. If the call records sends, the argument
// "asked" is the retention of the call's policy, and retain also puts this retention in force. If a shorter retention
// is in force by mistake or for a moment, the store deletes no entry that other policies need.
func (s *Store) retain(asked time.Duration, record bool) (time.Duration, error) {
	now, err := s.db.Now()
	if err != nil {
		return 0, err
	}
	millis := asked.Milliseconds()
	noted := s.retained.current()
	if record && millis > 0 && !noted.inForce(millis, now) {
		if noted, err = s.noteRetention(millis, now); err != nil {
			return 0, err
		}
	}
	return time.Duration(max(millis, noted.longest(now).millis)) * time.Millisecond, nil
}

// noteRetention writes a retention (time for which sends are kept) to the database, so that the store still knows the
// retention after a restart. The store writes a new retention to the write-ahead log before the sends that it records
// under this retention.
func (s *Store) noteRetention(millis int64, now capping.Instant) (retentions, error) {
	s.retained.mu.Lock()
	defer s.retained.mu.Unlock()
	noted := s.retained.current()
	if noted.inForce(millis, now) {
		return noted, nil
	}
	noted = noted.with(millis, now)
	batch := s.db.NewBatch()
	defer batch.Close()
	_ = batch.Set(retentionsKey, encodeRetentions(noted), nil) // fails only for indexed batches
	_ = batch.Set(retentionKey, encodeRetention(millis), nil)
	s.db.Commit(batch)
	s.retained.noted.Store(&noted)
	return noted, s.db.Broken()
}

// loadRetentions reads the store's list of retentions from the database. Earlier versions of capper stored only one
// retention (time for which sends are kept). The method loadRetentions treats a retention from an earlier version as if
// it was in force until now.
func (s *Store) loadRetentions() error {
	value, err := s.db.Lookup(retentionsKey)
	if err != nil {
		return err
	}
	noted, err := decodeRetentions(value)
	if err != nil {
		return err
	}
	if value, err = s.db.Lookup(retentionKey); err != nil {
		return err
	}
	millis, err := decodeRetention(value)
	if err != nil {
		return err
	}
	if millis > 0 {
		noted = noted.with(millis, max(0, capping.InstantOf(s.clock())))
	}
	s.retained.noted.Store(&noted)
	return nil
}

// encodeRetentions encodes each retention as a number of milliseconds (8 bytes) and the end of its time in force (8
// bytes).
func encodeRetentions(noted retentions) []byte {
	var value []byte
	for _, r := range noted {
		value = binary.BigEndian.AppendUint64(value, uint64(r.millis))
		value = binary.BigEndian.AppendUint64(value, uint64(r.until))
	}
	return value
}

func decodeRetentions(value []byte) (noted retentions, err error) {
	const size = 16
	if len(value)%size != 0 || len(value) > maxRetentions*size {
		return nil, fmt.Errorf(
			"stored list of retention times: the size must be a multiple of %d bytes and at most %d bytes, got %d",
			size, maxRetentions*size, len(value))
	}
	for ; len(value) > 0; value = value[size:] {
		r := retention{int64(binary.BigEndian.Uint64(value)), capping.Instant(binary.BigEndian.Uint64(value[8:]))}
		if r.millis <= 0 || r.until < 0 || r.until > 2*capping.Never {
			return nil, fmt.Errorf("stored retention time must be more than 0 ms (got %d ms), "+
				"and its end must be 0 to %d ms after the start of 2024 (got %d ms)",
				r.millis, 2*capping.Never, r.until)
		}
		if n := len(noted); n > 0 && noted[n-1].millis <= r.millis {
			return nil, fmt.Errorf("stored retention times must be in descending order, but %d ms comes before %d ms",
				noted[n-1].millis, r.millis)
		}
		noted = append(noted, r)
	}
	return noted, nil
}

func encodeRetention(millis int64) []byte {
	return binary.BigEndian.AppendUint64(nil, uint64(millis))
}

// decodeRetention returns a stored retention (time for which sends are kept) in milliseconds. If the argument is nil,
// no retention is stored, and decodeRetention returns 0.
func decodeRetention(value []byte) (int64, error) {
	if value == nil {
		return 0, nil
	}
	if len(value) != 8 || int64(binary.BigEndian.Uint64(value)) <= 0 {
		return 0, fmt.Errorf("stored retention time %x must be a positive 8-byte number", value)
	}
	return int64(binary.BigEndian.Uint64(value)), nil
}
