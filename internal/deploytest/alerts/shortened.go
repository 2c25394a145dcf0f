package alerts

import (
	"regexp"
	"strconv"
	"time"
)

// The tests divide durations in alert rules and queries by the constant shortening.
const shortening = 120

// The variable "spans" matches the durations that Shorten divides: windows and steps in brackets, offsets, and the
// durations after `for:`.
var spans = regexp.MustCompile(`(\[|\boffset |\bfor: )(\d+)([smhd])`)

var units = map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour}

// The function Shorten divides the durations in alert rules or in a query by 120. A test then needs seconds instead of
// minutes. The function Shorten does not change numbers in comparisons.
func Shorten(text string) string {
	return spans.ReplaceAllStringFunc(text, func(found string) string {
		m := spans.FindStringSubmatch(found)
		n, _ := strconv.Atoi(m[2]) // no error: the regular expression matches only digits
		return m[1] + strconv.FormatInt((time.Duration(n)*units[m[3]]/shortening).Milliseconds(), 10) + "ms"
	})
}
