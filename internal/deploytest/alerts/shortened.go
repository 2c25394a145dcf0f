package alerts

import (
	"regexp"
	"strconv"
	"time"
)

// shortening is the number by which the tests divide durations in rules and queries.
const shortening = 120

// spans matches the durations to divide: windows and steps in brackets, offsets, and the time for which a condition
// must hold.
var spans = regexp.MustCompile(`(\[|\boffset |\bfor: )(\d+)([smhd])`)

var units = map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour}

// Shorten divides the durations in rules or in a query. Shorten does not change numbers in comparisons.
func Shorten(text string) string {
	return spans.ReplaceAllStringFunc(text, func(found string) string {
		m := spans.FindStringSubmatch(found)
		n, _ := strconv.Atoi(m[2]) // digits
		return m[1] + strconv.FormatInt((time.Duration(n)*units[m[3]]/shortening).Milliseconds(), 10) + "ms"
	})
}
