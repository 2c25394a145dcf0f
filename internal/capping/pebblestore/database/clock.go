package database

import (
	"fmt"
	"time"

	"capper/internal/capping"
)

const (
	// defaultClockBound is the default of the tolerated lead of the clock over the comparison time. The store continues
	// without a restart if a machine slept for less than this time.
	defaultClockBound = 24 * time.Hour
	// longestRest is the longest plausible time between two uses of a store, and longer than any window of a limit. If
	// the clock shows a longer time since the last use, Open returns an error, because the clock may be wrong.
	longestRest = 400 * 24 * time.Hour
)

// A clockGuard detects a clock that is far ahead of the real time. The clockGuard compares the clock with an expected
// time: a known time plus the duration that the monotonic clock has counted since then. The known time is the later of
// two times: the file system's time when the store was opened, and the time of the last identity mark.
type clockGuard struct {
	bound  time.Duration
	known  time.Time
	opened time.Time // time of the opening by the process's own clock
}

func (g *clockGuard) check(now capping.Instant) error {
	latest := capping.InstantOf(g.known) + capping.Instant((time.Since(g.opened)).Milliseconds()) +
		capping.Instant(g.bound.Milliseconds())
	if now <= latest {
		return nil
	}
	return fmt.Errorf("the clock shows %v, more than %s ahead of the file system's clock "+
		"(sends recorded with this time would block users for too long): "+
		"correct the clock, or restart the service if the clock is right", now.Time(),
		capping.Span(g.bound))
}

// Now returns the time of this process's clock as an Instant. If the clock is certainly wrong, Now returns an error, so
// that no log gets a wrong time.
func (d *DB) Now() (capping.Instant, error) {
	_, now, err := d.now()
	return now, err
}

// The method Time returns the time of the process's clock. If the clock is certainly wrong, Time returns an error, so
// that no log gets a wrong time.
func (d *DB) Time() (time.Time, error) {
	at, _, err := d.now()
	return at, err
}

func (d *DB) now() (time.Time, capping.Instant, error) {
	at := d.config.Clock()
	now := capping.InstantOf(at)
	err := d.guard.check(now)
	if now < 0 || now >= capping.Never {
		err = fmt.Errorf("the clock must show a time between the years 2024 and 2058, but shows %v", now.Time())
	}
	if err != nil {
		d.config.CountError("clock")
		return time.Time{}, 0, err
	}
	return at, now, nil
}

// checkRest compares the clock with the time of the last identity mark (counter that exposes an old copy), when the
// store starts.
func (d *DB) checkRest(last time.Time, file string) error {
	rest, bound := d.config.Clock().Sub(last), d.config.ClockBound
	switch {
	case rest < -bound:
		return fmt.Errorf("file %s says that the store was last used at %s, but the clock shows %s, which is earlier "+
			"(sends may have expired too early): correct the clock, or remove the file if the clock is right",
			file, stamp(last), stamp(d.config.Clock()))
	case rest > max(bound, longestRest):
		return fmt.Errorf(
			"file %s says that the store was last used at %s, but the clock shows %s, which is much later "+
				"(sends with a wrong time would block users for too long): "+
				"correct the clock, or remove the file if the clock is right",
			file, stamp(last), stamp(d.config.Clock()))
	}
	return nil
}
