package topology

import (
	"strconv"
	"strings"
)

// Facts are the names and values in a reply of INFO or CLUSTER INFO.
type Facts map[string]string

// ParseInfo parses the reply of INFO or CLUSTER INFO into names and values.
func ParseInfo(text string) Facts {
	f := Facts{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			f[name] = value
		}
	}
	return f
}

// Number returns the value with the given name as a number. If the value is missing or is not a number, Number returns
// 0.
func (f Facts) Number(name string) int64 {
	n, _ := strconv.ParseInt(f[name], 10, 64)
	return n
}
