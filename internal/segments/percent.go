package segments

import (
	"math"
	"strconv"
)

// mostDigits is the number of decimal places that a percentage needs so that one user of 2^32 does not become 0 %.
const mostDigits = 9

// RoundPercent rounds a percentage to a number of decimal places, and rounds halves up. capper uses RoundPercent for
// all percentages that it displays or compares with an operator's approval.
func RoundPercent(percent float64, digits int) float64 {
	const binary = 1e-9 // tolerance in the last digit: 0.35 is slightly less in binary
	unit := math.Pow(10, float64(digits))
	return math.Floor(percent*unit+0.5+binary) / unit
}

// PercentText formats a percentage for people, usually with at most one decimal place. If the percentage is near 0, the
// text has enough decimal places to distinguish the percentage from 0.
func PercentText(percent float64) string {
	digits := 1
	for percent > 0 && RoundPercent(percent, digits) == 0 && digits < mostDigits {
		digits++
	}
	return plain(RoundPercent(percent, digits))
}

// FormatPercent formats a percentage with a given number of decimal places.
func FormatPercent(percent float64, digits int) string {
	return strconv.FormatFloat(RoundPercent(percent, digits), 'f', digits, 64)
}

// PercentAbove formats a percentage that is above a limit. The text has enough decimal places that the displayed number
// is also above the limit.
func PercentAbove(percent, bound float64) string {
	digits := 1
	for RoundPercent(percent, digits) <= bound && digits < mostDigits {
		digits++
	}
	return plain(RoundPercent(percent, digits))
}

// BoundText formats a limit in per cent as in the configuration, for example 20 or 0.05.
func BoundText(percent float64) string { return plain(RoundPercent(percent, mostDigits)) }

func plain(percent float64) string { return strconv.FormatFloat(percent, 'f', -1, 64) }
