package segments

import (
	"errors"
	"fmt"
	"time"

	"capper/internal/objects"
)

// maxBackOff is the longest pause between two attempts to read a faulty live generation (published version that
// current.json names). If the refresh interval is longer, the pause is one interval.
const maxBackOff = 15 * time.Minute

// The struct "spoiled" describes a live generation (published version that current.json names) whose read failed.
// Because a generation may have hundreds of megabytes, the Refresher retries a faulty generation after one interval,
// then after two, four and so on. When current.json changes, the Refresher retries at its next check. If the live
// generation is not faulty, the struct has the zero value.
type spoiled struct {
	tag   string // tag of the current.json that names the generation
	err   error
	pause time.Duration
	until time.Time
}

// The method "wait" returns an error if it is too early to read a faulty live generation (published version that
// current.json names) again. The argument "tag" of the method "wait" is the object tag of the current.json that names
// the generation.
func (s *spoiled) wait(tag string, now time.Time) error {
	if tag == "" || tag != s.tag || !now.Before(s.until) {
		return nil
	}
	return &backOffError{s.err, s.until}
}

// backOffError reports that it is too early to retry a faulty generation (published version).
type backOffError struct {
	error
	until time.Time
}

func (e *backOffError) Error() string {
	return fmt.Sprintf("%s; the next attempt to read this generation is after %s, or when %s changes",
		e.error, e.until.UTC().Format(time.RFC3339),
		CurrentKey)
}

func (e *backOffError) Unwrap() error { return e.error }

// The method "note" records the result of an attempt to read the live generation (published version that current.json
// names). If reading current.json itself failed, the argument "tag" is "".
func (s *spoiled) note(tag string, err error, now time.Time, interval time.Duration) {
	var waits *backOffError
	switch {
	case err == nil, errors.Is(err, objects.ErrNotModified), isRefused(err): // a retry reads only the manifest
		*s = spoiled{}
	case tag == "", errors.As(err, &waits):
	case tag == s.tag:
		s.err, s.pause = err, min(2*s.pause, max(maxBackOff, interval))
		s.until = now.Add(s.pause - interval/2) // the tick may be slightly early
	default:
		*s = spoiled{tag: tag, err: err, pause: interval, until: now.Add(interval / 2)}
	}
}
