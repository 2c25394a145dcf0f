package segments

import (
	"math"
	"strconv"
)

// mostDigits is how many digits behind the point tell one user of 2^32 from nobody.
const mostDigits = 9

// RoundPercent rounds a percentage to so many digits behind the point, half upwards. All
// that is shown is rounded so, and all that somebody accepts.
func RoundPercent(percent float64, digits int) float64 {
	const binary = 1e-9 // of the last digit: 0.35 is a little less in binary fractions
	unit := math.Pow(10, float64(digits))
	return math.Floor(percent*unit+0.5+binary) / unit
}

// PercentText is a percentage for people, with at most one digit behind the point, or as
// many as tell it from nothing.
func PercentText(percent float64) string {
	digits := 1
	for percent > 0 && RoundPercent(percent, digits) == 0 && digits < mostDigits {
		digits++
	}
	return plain(RoundPercent(percent, digits))
}

// FormatPercent is a percentage with so many digits behind the point.
func FormatPercent(percent float64, digits int) string {
	return strconv.FormatFloat(RoundPercent(percent, digits), 'f', digits, 64)
}

// PercentAbove is a percentage that is more than a bound, with as many digits as show it.
func PercentAbove(percent, bound float64) string {
	digits := 1
	for RoundPercent(percent, digits) <= bound && digits < mostDigits {
		digits++
	}
	return plain(RoundPercent(percent, digits))
}

// BoundText is a bound in per cent as it was given: 20, 0.05.
func BoundText(percent float64) string { return plain(RoundPercent(percent, mostDigits)) }

func plain(percent float64) string { return strconv.FormatFloat(percent, 'f', -1, 64) }
