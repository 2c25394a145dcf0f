package publish

import (
	"fmt"
	"math"
	"slices"
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
	// New names the segments and sets that may appear beside a live generation, or fill
	// after they had no users; tz/* is all sets below tz/.
	New []string
	// Of holds the bounds of single segments and sets, which go over the general ones;
	// those of tz/* are of all sets below tz/ that have none of their own.
	Of map[string]SegmentBounds
	// AllowFirst is what a first publish may have.
	AllowFirst []Flaw
	// Accept are changes of single segments and sets that somebody lets pass by name.
	Accept []acceptance
}

// UsualMaxLoss is how many users may leave a set that only grows where nothing is
// said, in per cent: who takes an objection back, and who is erased.
const UsualMaxLoss = 0.1

// SegmentBounds are those of one segment or set; nil: none of its own.
type SegmentBounds struct {
	// FreeBelow is how many users a set has to have, before or after, for its changes
	// to be judged; one that only grows is judged in any case.
	FreeBelow     uint64
	MaxChange     *float64
	MaxWeekChange *float64
	MinUsers      *uint64
	MaxUsers      *uint64
}

// ParsePercent reads a percentage such as 20% or 0.5; the sign may be left out.
func ParsePercent(text string) (float64, error) {
	v, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(text), "%")), 64)
	if err != nil || !(v >= 0) || math.IsInf(v, 1) {
		return 0, fmt.Errorf("%q: must be a percentage such as 20%%", text)
	}
	return v, nil
}

// family is how bounds name all sets of a folder: tz/* for tz/Asia/Singapore.
func family(name string) string {
	folder, _, ok := strings.Cut(name, "/")
	if !ok {
		return ""
	}
	return folder + "/*"
}

// own are the bounds of one segment or set.
func (b *Bounds) own(name string) SegmentBounds {
	if own, ok := b.Of[name]; ok {
		return own
	}
	return b.Of[family(name)]
}

// mayAppear reports whether somebody has said that a name is new.
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
