package config

import (
	"net"
	"regexp"
	"strconv"
	"time"

	"capper/internal/capping"
	"capper/internal/yamltree"
)

// named reads a string that the pattern matches.
func named(to *string, pattern *regexp.Regexp, rule string) yamltree.Field {
	return func(v yamltree.Value) {
		yamltree.Text(to)(v)
		if *to != "" && !pattern.MatchString(*to) {
			v.Fault(rule, *to)
		}
	}
}

// duration reads a duration from low to high, whole milliseconds.
func duration(to *time.Duration, low, high time.Duration) yamltree.Field {
	return func(v yamltree.Value) {
		if v.IsZero() && low == 0 {
			*to = 0
			return
		}
		s, _ := v.Word()
		d, err := time.ParseDuration(s)
		switch {
		case err != nil:
			v.Fault("must be a duration such as 30s or 24h, got %s", v.Describe())
		case d < low:
			v.Fault("must be at least %s, got %s", capping.Span(low), s)
		case d > high:
			v.Fault("must be at most %s, got %s", capping.Span(high), s)
		case d%time.Millisecond != 0:
			v.Fault("must be whole milliseconds, got %s", s)
		default:
			*to = d
		}
	}
}

// opposite reads true or false into what has the opposite meaning.
func opposite(to *bool) yamltree.Field {
	return func(v yamltree.Value) {
		said := !*to
		yamltree.Bool(&said)(v)
		*to = !said
	}
}

func address(to *string) yamltree.Field {
	return func(v yamltree.Value) {
		s, ok := v.Text()
		if !ok {
			return
		}
		_, port, err := net.SplitHostPort(s)
		_, portErr := strconv.ParseUint(port, 10, 16)
		if err != nil || portErr != nil {
			v.Fault("must be host:port, port 0 to 65535, got %q", s)
			return
		}
		*to = s
	}
}
