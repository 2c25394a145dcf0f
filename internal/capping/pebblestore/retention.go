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
	retentionKey  = []byte("\x00retention")  // of the policy in force; earlier versions read this key
	retentionsKey = []byte("\x00retentions") // retentions of the policy in force and of earlier policies
)

// retention holds two values: the time for which a policy keeps sends, and the time at which this policy was last in
// force.
type retention struct {
	millis int64
	until  capping.Instant
}

// passed reports whether the retention has no effect any more, because every send that was recorded under it is older
// than the retention.
func (r retention) passed(now capping.Instant) bool { return r.until+capping.Instant(r.millis) <= now }

// retentions lists those retentions that can still determine which sends the store deletes. The last element of the
// list of retentions is the retention of the present policy. Each earlier element of the list of retentions is a longer
// retention, which was in force until an earlier time.
type retentions []retention

const (
	// retentionLead is the time by which the end of a retention is stored in advance, so that not every call writes to
	// the database. Because of the lead, the stored end of a retention is never too early.
	retentionLead = capping.Instant(time.Hour / time.Millisecond)
	// maxRetentions is the maximum length of the stored list, for the case that an operator often changes the limits.
	maxRetentions = 16
)

// with returns the list of retentions as it is after a policy with the given retention in milliseconds comes
// into force now.
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

// last returns the retention in force. If the list of retentions is empty, last returns the zero retention
// (time for which sends are kept).
func (r retentions) last() retention {
	if len(r) == 0 {
		return retention{}
	}
	return r[len(r)-1]
}

// longest returns the longest retention that still has an effect; by this retention (time for which sends are kept),
// the store deletes log entries now. If no retention in the list has an effect any more, longest returns the retention
// in force.
func (r retentions) longest(now capping.Instant) retention {
	for _, old := range r {
		if !old.passed(now) {
			return old
		}
	}
	return r.last()
}

// warning is for a store that keeps sends longer than the policy in force needs: it returns a text about this for
// operators, or "".
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

// inForce reports whether the list says that a retention is in force for some time to come; the argument "millis" is
// this retention in milliseconds.
func (r retentions) inForce(millis int64, now capping.Instant) bool {
	last := r.last()
	return last.millis == millis && now < last.until-retentionLead/2
}

// notedRetentions holds the store's list of retentions, so that several goroutines can use it. To read the list, a
// goroutine needs one atomic load.
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

// retain returns the longest retention that was recently in force; by this retention (time for which sends are kept),
// the store deletes log entries. If the call records sends, retain also stores that the retention which the call's
// policy needs is in force. The store therefore deletes no entry that other policies need if a policy has a shorter
// retention for a moment or by mistake.
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

// noteRetention writes a retention (time for which sends are kept) to the database, so that the store still knows it
// after a restart. The write-ahead log therefore contains the new retention before the sends that are recorded under
// it.
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
// retention (time for which sends are kept); loadRetentions treats it as in force until now.
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

// encodeRetentions encodes each retention as its milliseconds (8 bytes) and the instant until which it was in force (8
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
		return nil, fmt.Errorf("stored list of retentions must have a multiple of %d bytes, at most %d bytes, got %d",
			size, maxRetentions*size, len(value))
	}
	for ; len(value) > 0; value = value[size:] {
		r := retention{int64(binary.BigEndian.Uint64(value)), capping.Instant(binary.BigEndian.Uint64(value[8:]))}
		if r.millis <= 0 || r.until < 0 || r.until > 2*capping.Never {
			return nil, fmt.Errorf("stored retention must last more than 0 ms (got %d ms), and must end from 0 to %d "+
				"ms after the start of 2024 (got %d ms)", r.millis, 2*capping.Never, r.until)
		}
		if n := len(noted); n > 0 && noted[n-1].millis <= r.millis {
			return nil, fmt.Errorf("stored list of retentions must descend, but %d ms is followed by %d ms",
				noted[n-1].millis, r.millis)
		}
		noted = append(noted, r)
	}
	return noted, nil
}

func encodeRetention(millis int64) []byte {
	return binary.BigEndian.AppendUint64(nil, uint64(millis))
}

// decodeRetention decodes a stored retention (time for which sends are kept), and returns it in milliseconds. If no
// retention is stored (the argument is nil), decodeRetention returns 0.
func decodeRetention(value []byte) (int64, error) {
	if value == nil {
		return 0, nil
	}
	if len(value) != 8 || int64(binary.BigEndian.Uint64(value)) <= 0 {
		return 0, fmt.Errorf("stored retention %x: must be a positive number of 8 bytes", value)
	}
	return int64(binary.BigEndian.Uint64(value)), nil
}
