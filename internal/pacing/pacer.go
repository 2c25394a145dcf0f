package pacing

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"capper/internal/capping"
)

// The bounds of pacers and of calls for permits.
const (
	MaxMax     = 10_000_000 // the largest Max of a limit
	MinWindow  = time.Millisecond
	MaxWindow  = 31 * 24 * time.Hour
	MaxLimits  = 4 // limits of a pacer, without its rate
	MaxPacers  = 8 // pacers in a call
	MaxPermits = 100_000
	MaxWait    = 24 * time.Hour
	// DefaultMaxWait is the longest wait of a pacer without a MaxWait.
	DefaultMaxWait = 30 * time.Second
)

// Time is an instant in microseconds since 1970.
type Time int64

// TimeOf returns t as a Time, rounded down to microseconds.
func TimeOf(t time.Time) Time { return Time(t.UnixMicro()) }

// Add returns the instant d later.
func (t Time) Add(d time.Duration) Time { return t + Time(d.Microseconds()) }

// Sub returns the duration t-u.
func (t Time) Sub(u Time) time.Duration { return time.Duration(t-u) * time.Microsecond }

// Limit allows at most Max slots in every window [t, t+Window).
type Limit struct {
	Max    int           // 1 to MaxMax
	Window time.Duration // MinWindow to MaxWindow, whole microseconds; for a rate at least 1 µs
}

// Check returns an error when the limit is invalid.
func (l Limit) Check() error {
	switch {
	case l.Max < 1 || l.Max > MaxMax:
		return fmt.Errorf("max: must be from 1 to %d, got %d", MaxMax, l.Max)
	case l.Window < time.Microsecond || l.Window > MaxWindow || l.Window%time.Microsecond != 0:
		return fmt.Errorf("window: must be whole microseconds up to %v, got %v", MaxWindow, l.Window)
	}
	return nil
}

// Most returns how many slots a window [t, t+w) can hold under this limit alone.
func (l Limit) Most(w time.Duration) int {
	return int((w-1)/l.Window+1) * l.Max
}

// Rate is a number of evenly spaced permits per time. The zero value means no rate.
type Rate struct {
	Permits int // 1 to MaxMax; 0: no rate
	Per     time.Duration
}

// RateRule is the error text of the rule that ParseRate checks. Its format verb takes the invalid rate.
const RateRule = "must be a number of permits per s, m, h or d, or per a duration, such as 250/s, 10/m or 100/10s, " +
	"at most one permit a microsecond and at least one in 31 days, got %s"

// unit is a time unit of a rate, such as s for a second.
type unit struct {
	words []string // names of the unit; String uses the first one
	per   time.Duration
}

// units returns the time units of rates. ParseRate reads any other text as a duration.
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

// perOf parses a unit or a duration. perOf returns 0 for any other text.
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

// Interval returns the time between two permits, rounded up to whole microseconds.
func (r Rate) Interval() time.Duration {
	step := time.Duration(r.Permits) * time.Microsecond
	return ((r.Per-1)/step + 1) * time.Microsecond
}

// Lost returns the fraction of the rate that is lost because Interval is rounded up, 0 to 1/2.
func (r Rate) Lost() float64 {
	if r.Permits == 0 {
		return 0
	}
	return 1 - float64(r.Per)/float64(r.Permits)/float64(r.Interval())
}

// String returns the rate in the form that ParseRate reads.
func (r Rate) String() string {
	for _, u := range units() {
		if r.Per == u.per {
			return strconv.Itoa(r.Permits) + "/" + u.words[0]
		}
	}
	return strconv.Itoa(r.Permits) + "/" + capping.Span(r.Per)
}

// Pacer is the configuration of one pacer: limits, a rate, or both.
type Pacer struct {
	Name    string
	Limits  []Limit       // limits: up to MaxLimits with different windows, in the order of the file
	Rate    Rate          // rate; zero: no rate
	MaxWait time.Duration // max_wait: the longest wait of a grant, up to MaxWait; 0: DefaultMaxWait
	Per     Per           // per: which things have a separate log
	Shares  []Share       // shares: parts kept for some calls, with distinct names; none unless Per is PerPacer
	// Group is group: a call may name only pacers of one group. A Redis store keeps each group in one hash slot. ""
	// means the common group.
	Group string
}

// AnyGroup stands for all groups, in ForgetPacer of Store. No group has this name.
const AnyGroup = "*"

// LongestWait returns the longest wait for a slot that the pacer grants: MaxWait, or DefaultMaxWait.
func (p *Pacer) LongestWait() time.Duration {
	if p.MaxWait > 0 {
		return p.MaxWait
	}
	return DefaultMaxWait
}

// Per says which things have a separate log: the whole pacer, each message or each key. The limits apply to each log.
type Per string

// The values of Per.
const (
	PerPacer   Per = "" // the pacer has one log
	PerMessage Per = "message"
	PerKey     Per = "key" // each key that callers give, for example the number of a sender
)

// Judged returns the limits that apply to each log of the pacer: the configured limits, then the limit of its rate.
func (p *Pacer) Judged() []Limit {
	limits := append([]Limit(nil), p.Limits...)
	if p.Rate.Permits > 0 {
		limits = append(limits, Limit{1, p.Rate.Interval()})
	}
	return limits
}

// PerSecond returns how many permits a second the pacer allows over a minute: the minimum of its rate and of all limits
// with a window of at most a minute. PerSecond returns 0 for a pacer without such a limit, or with several logs.
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

// LimitName returns the name of a limit of Judged in API responses: its window as in the configuration, or
// "rate".
func (p *Pacer) LimitName(judged int) string {
	if judged >= len(p.Limits) {
		return "rate"
	}
	return capping.Span(p.Limits[judged].Window)
}

// Fullest returns the index of the limit with the largest used fraction. If fractions are equal, it returns the limit
// with the longest window. Fullest returns -1 for a pacer with only a rate.
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
