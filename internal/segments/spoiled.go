package segments

import (
	"errors"
	"fmt"
	"time"

	"capper/internal/objects"
)

// maxBackOff is the longest time between two attempts at one live generation
// that cannot be read, unless the interval is longer.
const maxBackOff = 15 * time.Minute

// spoiled is a live generation that could not be read. It may have hundreds of
// megabytes, so it is read again after one interval, two, four and so on, and at
// once when current.json moves. The zero value: there is none.
type spoiled struct {
	tag   string // of its current.json
	err   error
	pause time.Duration
	until time.Time
}

// wait returns an error while the generation of a current.json is not to be read again.
func (s *spoiled) wait(tag string, now time.Time) error {
	if tag == "" || tag != s.tag || !now.Before(s.until) {
		return nil
	}
	return &backOffError{s.err, s.until}
}

// backOffError: the generation was not read again.
type backOffError struct {
	error
	until time.Time
}

func (e *backOffError) Error() string {
	return fmt.Sprintf("%s; it is read again after %s, or when %s moves", e.error, e.until.UTC().Format(time.RFC3339),
		CurrentKey)
}

func (e *backOffError) Unwrap() error { return e.error }

// note takes down what came of an attempt; tag is "" when current.json itself was not read.
func (s *spoiled) note(tag string, err error, now time.Time, interval time.Duration) {
	var waits *backOffError
	switch {
	case err == nil, errors.Is(err, objects.ErrNotModified), isRefused(err): // what is refused costs a manifest
		*s = spoiled{}
	case tag == "", errors.As(err, &waits):
	case tag == s.tag:
		s.err, s.pause = err, min(2*s.pause, max(maxBackOff, interval))
		s.until = now.Add(s.pause - interval/2) // half an interval, so that the tick at its end is not too early
	default:
		*s = spoiled{tag: tag, err: err, pause: interval, until: now.Add(interval / 2)}
	}
}
