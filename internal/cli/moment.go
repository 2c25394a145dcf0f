package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"capper/internal/capping"
	"capper/internal/terminal"
)

// The type moment is a time on the command line: an age such as 30d or 12h, a time in RFC 3339, or a date. A date on
// the command line means the beginning of the day in UTC. The zero value of moment means that the command line does not
// contain the flag.
type moment struct {
	ago  time.Duration
	at   time.Time
	text string
}

// momentForms returns the layouts of times that the command line accepts, beginning with the most exact layout.
func momentForms() []string {
	return []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02T15:04", time.DateOnly}
}

// UnmarshalText parses an age, a time or a date on the command line.
func (m *moment) UnmarshalText(text []byte) error {
	m.text = string(text)
	if ago, ok := parseAgo(m.text); ok {
		m.ago = ago
		return nil
	}
	for _, form := range momentForms() {
		if at, err := time.Parse(form, m.text); err == nil {
			m.at = at
			return nil
		}
	}
	return fmt.Errorf("must be an age up to %dd such as 30d or 12h, or a time such as 2026-11-22T10:00:00Z or "+
		"2026-11-22, got %q", maxAgeDays, m.text)
}

// The constant maxAgeDays is the maximum age on the command line, in days. The server has the same bound.
const maxAgeDays = 65535

// parseAgo parses an age, which is a duration of at most maxAgeDays that may also have the unit d (days) or w (weeks).
func parseAgo(text string) (age time.Duration, ok bool) {
	const day = 24 * time.Hour
	age, err := time.ParseDuration(text)
	for unit, length := range map[string]time.Duration{"d": day, "w": 7 * day} {
		if digits, found := strings.CutSuffix(text, unit); found {
			var n uint64
			n, err = strconv.ParseUint(digits, 10, 64)
			age = time.Duration(min(n, 1+uint64(maxAgeDays*day/length))) * length // 16000w overflows a time.Duration
		}
	}
	return age, err == nil && age > 0 && age <= maxAgeDays*day
}

// The method Given reports whether the flag was given.
func (m *moment) Given() bool { return m.text != "" }

// The method Instant converts the time on the command line to a capping.Instant. An age counts backwards from now. The
// method Instant returns 0 if the command line does not contain the time, or if no record can be as old as the time.
func (m *moment) Instant(now time.Time) capping.Instant {
	switch {
	case !m.Given():
		return 0
	case m.ago > 0:
		return max(capping.InstantOf(now.Add(-m.ago)), 0)
	}
	return max(capping.InstantOf(m.at), 0)
}

// The type Span holds the command-line flags for the period whose audit records a command reads.
type Span struct {
	Since moment `placeholder:"TIME" help:"Start of the period to read: an age (30d, 12h) or a time (2026-11-22, 2026-11-22T10:00:00Z). Default: the earliest recorded call."`
	Until moment `placeholder:"TIME" help:"End of the period to read: an age (30d, 12h) or a time (2026-11-22, 2026-11-22T10:00:00Z); a date is the start of the day in UTC. Default: now."`
}

// The method "instants" returns the beginning and the end of the period that the flags name.
func (s *Span) instants(now time.Time) (since, until capping.Instant, err error) {
	since, until = s.Since.Instant(now), s.Until.Instant(now)
	if s.Until.Given() && until <= since {
		err := fmt.Errorf("--until %s must be later than --since", s.Until.text)
		if until == since && len(s.Until.text) == len(time.DateOnly) {
			err = terminal.Hinted(err, "a date is the start of the day in UTC: for the whole day, use --until "+
				until.Time().AddDate(0, 0, 1).Format(time.DateOnly))
		}
		return 0, 0, err
	}
	return since, until, nil
}
