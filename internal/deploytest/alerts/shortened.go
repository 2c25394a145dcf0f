package alerts

import (
	"regexp"
	"strconv"
	"time"
)

// shortening is by how much the tests divide time in rules and queries.
const shortening = 120

// spans are what is divided: windows and steps in brackets, offsets, and how long a condition has to hold.
var spans = regexp.MustCompile(`(\[|\boffset |\bfor: )(\d+)([smhd])`)

var units = map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour}

// Shorten divides the spans of time in rules or in a query. Numbers that are compared with stay.
func Shorten(text string) string {
	return spans.ReplaceAllStringFunc(text, func(found string) string {
		m := spans.FindStringSubmatch(found)
		n, _ := strconv.Atoi(m[2]) // digits
		return m[1] + strconv.FormatInt((time.Duration(n)*units[m[3]]/shortening).Milliseconds(), 10) + "ms"
	})
}
