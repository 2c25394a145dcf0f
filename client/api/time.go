package api

import "time"

// Milliseconds is how instants of decisions and sends are written: RFC 3339
// with milliseconds, in UTC.
const Milliseconds = "2006-01-02T15:04:05.000Z07:00"

// instant is a time that is written with Milliseconds. Types with such times
// have them as time.Time, and a MarshalJSON that writes them as instants.
type instant time.Time

func (i instant) MarshalText() ([]byte, error) {
	return time.Time(i).UTC().AppendFormat(nil, Milliseconds), nil
}
