package topology

import (
	"strconv"
	"strings"
)

// Facts are the names and values in a reply of INFO or CLUSTER INFO.
type Facts map[string]string

// ParseInfo parses the reply of INFO or CLUSTER INFO.
func ParseInfo(text string) Facts {
	f := Facts{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			f[name] = value
		}
	}
	return f
}

// Number returns the value with the name as a number, or 0 if it is missing or no number.
func (f Facts) Number(name string) int64 {
	n, _ := strconv.ParseInt(f[name], 10, 64)
	return n
}
