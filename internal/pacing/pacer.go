package pacing

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"capper/internal/capping"
)

// These constants limit the configuration of pacers, and calls for permits.
const (
	MaxMax     = 10_000_000 // the largest Max of a limit
	MinWindow  = time.Millisecond
	MaxWindow  = 31 * 24 * time.Hour
	MaxLimits  = 4 // limits of a pacer, without its rate
	MaxPacers  = 8 // pacers in a call
	MaxPermits = 100_000
	MaxWait    = 24 * time.Hour
	// DefaultMaxWait is the longest wait of a pacer that has no MaxWait.
	DefaultMaxWait = 30 * time.Second
)

// Time is an instant in microseconds since 1970 (UTC).
type Time int64

// TimeOf returns t as a Time, rounded down to microseconds.
func TimeOf(t time.Time) Time { return Time(t.UnixMicro()) }

// Add returns the instant t+d.
func (t Time) Add(d time.Duration) Time { return t + Time(d.Microseconds()) }

// Sub returns the duration t-u.
func (t Time) Sub(u Time) time.Duration { return time.Duration(t-u) * time.Microsecond }

// Limit allows at most Max sends of a pacer to start in every window [t, t+Window), for every instant t.
type Limit struct {
	Max    int           // 1 to MaxMax
	Window time.Duration // MinWindow to MaxWindow, whole microseconds; for a rate at least 1 µs
}

// Check returns an error if the limit is invalid.
func (l Limit) Check() error {
	switch {
	case l.Max < 1 || l.Max > MaxMax:
		return fmt.Errorf("max: must be a number of permits from 1 to %d, got %d", MaxMax, l.Max)
	case l.Window < time.Microsecond || l.Window > MaxWindow || l.Window%time.Microsecond != 0:
		return fmt.Errorf("window: must be a duration of whole microseconds up to %v, got %v", MaxWindow, l.Window)
	}
	return nil
}

// The method Most returns the largest number of slots (start times of sends) in a time span [t, t+w) if only this limit
// applies.
func (l Limit) Most(w time.Duration) int {
	return int((w-1)/l.Window+1) * l.Max
}

// Rate allows a number of permits per period Per, at equal distances. The zero Rate means that a pacer has no rate.
type Rate struct {
	Permits int // 1 to MaxMax; 0: no rate
	Per     time.Duration
}

// RateRule is the error text for a rate that ParseRate rejects: a format string whose verb takes the invalid rate.
const RateRule = "must be a number of permits per s, m, h or d, or per a duration, such as 250/s, 10/m or 100/10s, " +
	"at most one permit a microsecond and at least one in 31 days, got %s"

// A unit is a unit of time in the text of a rate, such as "s" in "250/s".
type unit struct {
	words []string // names of the unit; String uses the first name
	per   time.Duration
}

// The function "units" returns the time units that a rate may name after its slash. ParseRate reads any other text
// after the slash as a duration.
func units() []unit {
	return []unit{
		{[]string{"s", "sec", "second"}, time.Second},
		{[]string{"m", "min", "minute"}, time.Minute},
		{[]string{"h", "hour"}, time.Hour},
		{[]string{"d", "day"}, 24 * time.Hour},
	}
}

// ParseRate parses a rate such as "250/s". ParseRate returns false for an invalid rate.
func ParseRate(text string) (r Rate, ok bool) {
	permits, per, _ := strings.Cut(text, "/")
	n, err := strconv.ParseUint(permits, 10, 32)
	if err != nil || n < 1 || n > MaxMax {
		return Rate{}, false
	}
	r = Rate{int(n), perOf(per)}
	if each := r.Per / time.Duration(r.Permits); each < time.Microsecond || each > MaxWindow ||
		r.Interval() > MaxWindow {
		return Rate{}, false
	}
	return r, true
}

// perOf parses the part of a rate after the slash: a unit or a duration. The function perOf returns 0 for any other
// text.
func perOf(text string) time.Duration {
	for _, u := range units() {
		if slices.Contains(u.words, text) {
			return u.per
		}
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0
	}
	return d
}

// Interval returns the time between two permits at this rate, rounded up to whole microseconds.
func (r Rate) Interval() time.Duration {
	step := time.Duration(r.Permits) * time.Microsecond
	return ((r.Per-1)/step + 1) * time.Microsecond
}

// The method Lost returns the fraction of the rate, from 0 to 1/2, that is lost because Interval rounds up to
// microseconds.
func (r Rate) Lost() float64 {
	if r.Permits == 0 {
		return 0
	}
	return 1 - float64(r.Per)/float64(r.Permits)/float64(r.Interval())
}

// String returns the rate as a text that ParseRate reads.
func (r Rate) String() string {
	for _, u := range units() {
		if r.Per == u.per {
			return strconv.Itoa(r.Permits) + "/" + u.words[0]
		}
	}
	return strconv.Itoa(r.Permits) + "/" + capping.Span(r.Per)
}

// Pacer is the configuration of one pacer (rate limiter for the starts of sends): its limits, its rate, or both.
type Pacer struct {
	Name    string
	Limits  []Limit       // limits: up to MaxLimits with different windows, in the order of the file
	Rate    Rate          // rate; zero: the pacer has no rate
	MaxWait time.Duration // max_wait: the longest wait for a slot, up to MaxWait; 0: DefaultMaxWait
	Per     Per           // per: whether messages or keys have separate logs
	Shares  []Share       // shares: parts reserved for some calls, with distinct names; none unless Per is PerPacer
	// Group (configuration key "group") names the group of the pacer: all pacers of one call must be in the same group.
	// A Redis store keeps the logs of all pacers of a group in one hash slot. "" names the default group.
	Group string
}

// AnyGroup, as an argument of Store.ForgetPacer, means all groups of pacers. No group can have the name "*".
const AnyGroup = "*"

// LongestWait returns the longest wait for a slot of the pacer: MaxWait, or DefaultMaxWait if MaxWait is 0.
func (p *Pacer) LongestWait() time.Duration {
	if p.MaxWait > 0 {
		return p.MaxWait
	}
	return DefaultMaxWait
}

// Per says whether a pacer has one log (list of granted slots), one log for each message or one log for each key. The
// pacer's limits apply to each log separately.
type Per string

// These constants are the possible numbers of logs of a pacer: one, one for each message, or one for each key.
const (
	PerPacer   Per = "" // the pacer has one log
	PerMessage Per = "message"
	PerKey     Per = "key" // each key that callers name, for example the number of a sender
)

// The method Judged returns all limits that each log of the pacer must obey. The configured limits come first, and then
// the rate as a limit of one slot per interval.
func (p *Pacer) Judged() []Limit {
	limits := append([]Limit(nil), p.Limits...)
	if p.Rate.Permits > 0 {
		limits = append(limits, Limit{1, p.Rate.Interval()})
	}
	return limits
}

// PerSecond returns the number of permits per second that the pacer allows over a minute. The result of PerSecond is
// the minimum over the rate and all limits with a window of at most a minute. If the pacer has neither a rate nor a
// limit with a window of at most a minute, PerSecond returns 0. If the pacer has several logs, PerSecond also returns
// 0.
func (p *Pacer) PerSecond() (least float64) {
	if p.Per != PerPacer {
		return 0
	}
	for i, limit := range p.Judged() {
		each := float64(limit.Max) / limit.Window.Seconds()
		if (i == len(p.Limits) || limit.Window <= time.Minute) && (least == 0 || each < least) {
			least = each
		}
	}
	return least
}

// LimitName returns the name of a limit in API responses: the window of the limit, or "rate". The argument "judged" of
// LimitName is the index of the limit in the list that the method Judged returns.
func (p *Pacer) LimitName(judged int) string {
	if judged >= len(p.Limits) {
		return "rate"
	}
	return capping.Span(p.Limits[judged].Window)
}

// The method Fullest returns the index of the configured limit with the largest used fraction of its Max. If two
// fractions are equal, Fullest returns the limit with the longer window. The method Fullest returns -1 if the pacer has
// only a rate.
func (p *Pacer) Fullest(state *State) int {
	fullest := -1
	for i, limit := range p.Limits {
		if fullest < 0 {
			fullest = i
			continue
		}
		than := p.Limits[fullest]
		ours, theirs := state.Used[i]*than.Max, state.Used[fullest]*limit.Max
		if ours > theirs || ours == theirs && limit.Window > than.Window {
			fullest = i
		}
	}
	return fullest
}
