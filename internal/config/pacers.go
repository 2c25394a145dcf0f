package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"capper/internal/capping"
	"capper/internal/pacing"
	"capper/internal/yamltree"
)

// maxPacers is the maximum number of configured pacers. The constant maxPacers also bounds the number of metric series,
// because each pacer has its own series.
const maxPacers = 1000

func (r *reader) pacers(v yamltree.Value) {
	v.Pairs(func(key string, at, val yamltree.Value) {
		if !capping.IsName(key) {
			at.Fault(capping.NameRule, key)
		}
		r.Pacers.Pacers = append(r.Pacers.Pacers, r.pacer(key, val))
	})
	if n := len(r.Pacers.Pacers); n > maxPacers {
		v.Fault("must be at most %d pacers, got %d", maxPacers, n)
	}
}

func (r *reader) pacer(name string, v yamltree.Value) pacing.Pacer {
	p := pacing.Pacer{Name: name}
	per := ""
	if !v.IsMapping() {
		v.Fault("must be a mapping of limits, rate or both, got %s", v.Describe())
		return p
	}
	before := len(v.Faults())
	given := v.Object(map[string]yamltree.Field{
		"limits":   func(v yamltree.Value) { p.Limits = pacerLimits(v) },
		"rate":     func(v yamltree.Value) { p.Rate = pacerRate(v) },
		"max_wait": duration(&p.MaxWait, time.Millisecond, pacing.MaxWait),
		"shares":   func(v yamltree.Value) { p.Shares = pacerShares(v) },
		"group": func(v yamltree.Value) {
			var text bool
			if p.Group, text = v.Text(); text && !capping.IsName(p.Group) {
				v.Fault(capping.NameRule, p.Group)
			}
		},
		"per": yamltree.OneOf(&per, string(pacing.PerMessage), string(pacing.PerKey)),
	})
	p.Per = pacing.Per(per)
	if !given["limits"] && !given["rate"] {
		v.Fault("must have limits, a rate, or both")
	}
	switch {
	case !given["shares"]:
	case p.Per != pacing.PerPacer:
		v.FaultOf("shares", "must not be given with per: a log for each %s has no shares", p.Per)
	case p.Period() > pacing.MaxWindow:
		v.FaultOf("shares", "must be shares of a faster rate: %s is too slow to be divided", p.Rate)
	}
	if len(v.Faults()) == before {
		r.Warnings = append(r.Warnings, pacerWarnings(v.Path(), &p)...)
	}
	return p
}

// pacerShares reads the shares of a pacer. Each share is a name with the percentage of permits that the pacer reserves
// for callers of this share.
func pacerShares(v yamltree.Value) (shares []pacing.Share) {
	sum, before := 0, len(v.Faults())
	v.Pairs(func(key string, at, val yamltree.Value) {
		if !capping.IsName(key) {
			at.Fault(capping.NameRule, key)
		}
		text, _ := val.Word()
		digits, percent := strings.CutSuffix(text, "%")
		n, err := strconv.Atoi(digits)
		if !percent || err != nil || n < 1 || n > 100 {
			val.Fault("must be a whole percentage from 1%% to 100%%, such as 20%%, got %s", val.Describe())
		}
		sum += n
		shares = append(shares, pacing.Share{Name: key, Percent: n})
	})
	if len(v.Faults()) > before || !v.IsMapping() {
		return shares
	}
	switch {
	case len(shares) == 0 || len(shares) > pacing.MaxShares:
		v.Fault("must have 1 to %d shares, got %d", pacing.MaxShares, len(shares))
	case sum > 100:
		v.Fault("must add up to at most 100%%, got %d%%", sum)
	}
	return shares
}

func pacerLimits(v yamltree.Value) (limits []pacing.Limit) {
	windows := map[time.Duration]string{}
	v.List(func(v yamltree.Value) {
		var limit pacing.Limit
		given := v.Object(map[string]yamltree.Field{
			"max":    yamltree.Within(&limit.Max, 1, pacing.MaxMax),
			"window": duration(&limit.Window, pacing.MinWindow, pacing.MaxWindow),
		})
		for _, key := range []string{"max", "window"} {
			if v.IsMapping() && !given[key] {
				v.FaultOf(key, "is required")
			}
		}
		if other, taken := windows[limit.Window]; taken && limit.Window > 0 {
			v.FaultOf("window", "must be unique, but %s is also the duration of %s", capping.Span(limit.Window), other)
		}
		windows[limit.Window] = v.Path()
		limits = append(limits, limit)
	})
	if n := len(limits); v.IsList() && (n == 0 || n > pacing.MaxLimits) {
		v.Fault("must have 1 to %d limits, got %d", pacing.MaxLimits, n)
	}
	return limits
}

func pacerRate(v yamltree.Value) pacing.Rate {
	text, _ := v.Word()
	rate, ok := pacing.ParseRate(text)
	if !ok {
		v.Fault(pacing.RateRule, v.Describe())
	}
	return rate
}

// pacerWarnings returns warnings about pacers that are valid but probably unintended. For example, pacerWarnings
// warns if the rate of a pacer changes because of rounding, or if one limit of a pacer makes another limit
// ineffective.
func pacerWarnings(path string, p *pacing.Pacer) (warnings []string) {
	if lost := p.Rate.Lost(); lost > 0.001 {
		warnings = append(warnings, fmt.Sprintf("%s.rate: %s is one every %s, as intervals are whole microseconds: "+
			"it gives %s/s, %.1f %% less",
			path, p.Rate, p.Rate.Interval(), perSecond(p.Rate.Interval()), 100*lost))
	}
	judged := p.Judged()
	for i, limit := range judged {
		for j, other := range judged {
			most := other.Most(limit.Window)
			if i == j || most > limit.Max || i < j && limit == other {
				continue
			}
			warnings = append(warnings, fmt.Sprintf("%s.%s changes nothing: %s alone allows no more than %d in any %s",
				path, judgedKey(p, i), judgedKey(p, j), most, capping.Span(limit.Window)))
			break
		}
	}
	return warnings
}

// judgedKey returns the configuration key of a pacer's limit. The argument "judged" is the index of the limit in the
// list that the method Pacer.Judged returns.
func judgedKey(p *pacing.Pacer, judged int) string {
	if judged < len(p.Limits) {
		return fmt.Sprintf("limits[%d]", judged)
	}
	return "rate"
}

// perSecond converts an interval to a rate per second, in plain digits.
func perSecond(interval time.Duration) string {
	text := strconv.FormatFloat(float64(time.Second)/float64(interval), 'f', 3, 64)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}
