package topology

import (
	"strconv"
	"strings"
)

// Facts are the lines of INFO and its like.
type Facts map[string]string

// ParseInfo reads the reply of INFO or CLUSTER INFO.
func ParseInfo(text string) Facts {
	f := Facts{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			f[name] = value
		}
	}
	return f
}

// Number is the value of the name, 0 where there is none.
func (f Facts) Number(name string) int64 {
	n, _ := strconv.ParseInt(f[name], 10, 64)
	return n
}
