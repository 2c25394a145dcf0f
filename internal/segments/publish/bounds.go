package publish

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// usualWeek is the default limit for the change of a segment within a week, as a multiple of the limit for one publish.
// Seven small changes in a week do not exceed the weekly limit, but seven changes near the limit for one publish do.
const usualWeek = 2.5

// UsualMaxChange is the default for Bounds.MaxChange, in per cent.
const UsualMaxChange = 20

// Bounds contains the limits for changes of segments and sets. Without an operator's approval, a generation (published
// version) that exceeds the limits may not go live.
type Bounds struct {
	// MaxChange is the percentage of a segment's users who may join, or who may leave, from one publish to the next.
	MaxChange float64
	// MaxWeekChange is the limit for the change of a segment since a week ago, in per cent. If MaxWeekChange is nil,
	// the limit is usualWeek times the segment's MaxChange.
	MaxWeekChange *float64
	// MaxUnassigned is the percentage of users in segments who may be in no segment after a publish. If MaxUnassigned
	// is nil, the limit is MaxChange.
	MaxUnassigned *float64
	// New names the segments and sets that may be new in a generation, or gain users after they were empty. The name
	// tz/* stands for all sets below tz/.
	New []string
	// The field Of contains limits for single segments and sets. The limits in Of override the general limits. The
	// limits for tz/* apply to each set below tz/ that has no own limits.
	Of map[string]SegmentBounds
	// AllowFirst lists the flaws that the guard allows in a first publish.
	AllowFirst []Flaw
	// Accept lists the operator's approvals of changes of single segments and sets.
	Accept []acceptance
}

// UsualMaxLoss is the default percentage of users who may leave a set that only grows, per publish. Users may leave a
// set that only grows, for example, because they withdraw an objection or are erased.
const UsualMaxLoss = 0.1

// SegmentBounds contains the limits for changes of one segment or set. If a limit in SegmentBounds is nil, the
// corresponding limit in Bounds applies to the segment or set.
type SegmentBounds struct {
	// FreeBelow is a number of users: the guard does not judge a set that has fewer users before and after the change.
	// The guard always judges a set that only grows.
	FreeBelow     uint64
	MaxChange     *float64
	MaxWeekChange *float64
	MinUsers      *uint64
	MaxUsers      *uint64
}

// ParsePercent parses a percentage such as 20% or 0.5; the per cent sign is optional.
func ParsePercent(text string) (float64, error) {
	v, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(text), "%")), 64)
	if err != nil || !(v >= 0) || math.IsInf(v, 1) {
		return 0, fmt.Errorf("%q: must be a percentage such as 20%%", text)
	}
	return v, nil
}

// The function "family" returns the pattern for all sets in the folder of a set, such as "tz/*" for the set
// "tz/Asia/Singapore". Configured limits use patterns of this form.
func family(name string) string {
	folder, _, ok := strings.Cut(name, "/")
	if !ok {
		return ""
	}
	return folder + "/*"
}

// The method "own" returns the configured limits for one segment or set, by its name or its folder.
func (b *Bounds) own(name string) SegmentBounds {
	if own, ok := b.Of[name]; ok {
		return own
	}
	return b.Of[family(name)]
}

// mayAppear reports whether the configuration (Bounds.New) allows the named segment or set to be new.
func (b *Bounds) mayAppear(name string) bool {
	return slices.Contains(b.New, name) || strings.Contains(name, "/") && slices.Contains(b.New, family(name))
}

func (b *Bounds) maxChange(name string) float64 { return orElse(b.own(name).MaxChange, b.MaxChange) }

func (b *Bounds) maxWeekChange(segment string) float64 {
	return orElse(b.own(segment).MaxWeekChange, orElse(b.MaxWeekChange, usualWeek*b.maxChange(segment)))
}

func orElse(v *float64, otherwise float64) float64 {
	if v == nil {
		return otherwise
	}
	return *v
}
