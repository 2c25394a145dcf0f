package pacing

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"capper/internal/capping"
)

// The bounds of pacers and of what is asked of them.
const (
	MaxMax     = 10_000_000 // of a limit
	MinWindow  = time.Millisecond
	MaxWindow  = 31 * 24 * time.Hour
	MaxLimits  = 4 // of a pacer, beside its rate
	MaxPacers  = 8 // of a call
	MaxPermits = 100_000
	MaxWait    = 24 * time.Hour
)

// Time is an instant: microseconds since 1970.
type Time int64

// TimeOf is the instant of t, rounded down.
func TimeOf(t time.Time) Time { return Time(t.UnixMicro()) }

// Add is the instant d later.
func (t Time) Add(d time.Duration) Time { return t + Time(d.Microseconds()) }

// Sub is for how long it has been u at t.
func (t Time) Sub(u Time) time.Duration { return time.Duration(t-u) * time.Microsecond }

// Limit allows at most Max slots in every window [t, t+Window).
type Limit struct {
	Max    int           // 1 to MaxMax
	Window time.Duration // MinWindow to MaxWindow, whole microseconds; of a rate from a microsecond
}

// Check is why l is no limit, or nil.
func (l Limit) Check() error {
	switch {
	case l.Max < 1 || l.Max > MaxMax:
		return fmt.Errorf("max: must be from 1 to %d, got %d", MaxMax, l.Max)
	case l.Window < time.Microsecond || l.Window > MaxWindow || l.Window%time.Microsecond != 0:
		return fmt.Errorf("window: must be whole microseconds up to %v, got %v", MaxWindow, l.Window)
	}
	return nil
}

// Most is how many slots a window [t, t+w) can hold where l alone is kept.
func (l Limit) Most(w time.Duration) int {
	return int((w-1)/l.Window+1) * l.Max
}

// Rate is how many evenly spaced permits there are per time. The zero value is none.
type Rate struct {
	Permits int // 1 to MaxMax; 0: no rate
	Per     time.Duration
}

// RateRule says what ParseRate demands, to be formatted with what was found.
const RateRule = "must be a number of permits per s, m, h or d, or per a duration, such as 250/s, 10/m or 100/10s, " +
	"at most one permit a microsecond and at least one in 31 days, got %s"

// unit is a time that a rate may be per.
type unit struct {
	words []string // the first is how it is written
	per   time.Duration
}

// units are those of rates. Everything else is a duration.
func units() []unit {
	return []unit{
		{[]string{"s", "sec", "second"}, time.Second},
		{[]string{"m", "min", "minute"}, time.Minute},
		{[]string{"h", "hour"}, time.Hour},
		{[]string{"d", "day"}, 24 * time.Hour},
	}
}

// ParseRate reads "250/s"; false: it is none.
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

// perOf reads a unit or a duration; 0: it is neither.
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

// Interval is from one permit to the next: whole microseconds, rounded up.
func (r Rate) Interval() time.Duration {
	step := time.Duration(r.Permits) * time.Microsecond
	return ((r.Per-1)/step + 1) * time.Microsecond
}

// Lost is the share of the rate that rounding its interval up costs, 0 to 1/2.
func (r Rate) Lost() float64 {
	if r.Permits == 0 {
		return 0
	}
	return 1 - float64(r.Per)/float64(r.Permits)/float64(r.Interval())
}

// String is the rate as ParseRate reads it.
func (r Rate) String() string {
	for _, u := range units() {
		if r.Per == u.per {
			return strconv.Itoa(r.Permits) + "/" + u.words[0]
		}
	}
	return strconv.Itoa(r.Permits) + "/" + capping.Span(r.Per)
}

// Pacer is what configuration says of one: limits, a rate, or both.
type Pacer struct {
	Name       string
	Limits     []Limit       // limits: up to MaxLimits, in the order of the file, each with a window of its own
	Rate       Rate          // rate; zero: none
	MaxWait    time.Duration // max_wait: the longest wait that it grants, up to MaxWait; 0: what a call allows
	PerMessage bool          // per: message: a log for each message id
}

// Judged are the limits that the pacer's logs are judged by: its own, then its
// rate's.
func (p *Pacer) Judged() []Limit {
	limits := append([]Limit(nil), p.Limits...)
	if p.Rate.Permits > 0 {
		limits = append(limits, Limit{1, p.Rate.Interval()})
	}
	return limits
}

// LimitName is how answers name the limit of Judged: its window as configuration
// writes it, or "rate".
func (p *Pacer) LimitName(judged int) string {
	if judged >= len(p.Limits) {
		return "rate"
	}
	return capping.Span(p.Limits[judged].Window)
}

// Fullest is the limit of Limits of which the greatest share is used, of equal ones
// that of the longest window; -1: there is a rate alone.
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
