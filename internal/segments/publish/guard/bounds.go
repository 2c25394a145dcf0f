package guard

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// usualWeek is how many times the change of one publish may come together in a
// week where nothing is said: seven small changes pass, seven that each were
// almost refused do not.
const usualWeek = 2.5

// UsualMaxChange is Bounds.MaxChange where nothing is said, in per cent.
const UsualMaxChange = 20

// Bounds are what may go live without somebody's word for it.
type Bounds struct {
	// MaxChange is how many of a segment's users may come and go from one publish
	// to the next, per 100 users before.
	MaxChange float64
	// MaxWeekChange is the same since a week ago. Nil: usualWeek times a segment's MaxChange.
	MaxWeekChange *float64
	// MaxUnassigned is how many users may fall to no segment, per 100 users that
	// were in one. Nil: as MaxChange.
	MaxUnassigned *float64
	// New names the segments that may appear beside a live generation, or fill
	// after they had no users.
	New []string
	// Of holds the bounds of single segments, which go over the general ones.
	Of map[string]SegmentBounds
	// AllowFirst is what a first publish may have.
	AllowFirst []Flaw
}

// SegmentBounds are those of one segment; nil: none of its own.
type SegmentBounds struct {
	MaxChange     *float64
	MaxWeekChange *float64
	MinUsers      *uint64
	MaxUsers      *uint64
}

// ParsePercent reads a percentage such as 20% or 0.5; the sign may be left out.
func ParsePercent(text string) (float64, error) {
	v, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(text), "%")), 64)
	if err != nil || !(v >= 0) || math.IsInf(v, 1) {
		return 0, fmt.Errorf("%q is not a percentage such as 20%%", text)
	}
	return v, nil
}

func (b *Bounds) maxChange(segment string) float64 {
	return orElse(b.Of[segment].MaxChange, b.MaxChange)
}

func (b *Bounds) maxWeekChange(segment string) float64 {
	return orElse(b.Of[segment].MaxWeekChange, orElse(b.MaxWeekChange, usualWeek*b.maxChange(segment)))
}

func orElse(v *float64, otherwise float64) float64 {
	if v == nil {
		return otherwise
	}
	return *v
}
