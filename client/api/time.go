package api

import "time"

// Milliseconds is the time format of decisions and sends: RFC 3339 with milliseconds, in UTC.
const Milliseconds = "2006-01-02T15:04:05.000Z07:00"

// The type instant is a time that JSON shows in the format Milliseconds (RFC 3339 with milliseconds, in UTC). The types
// of package api declare time fields as time.Time, and convert them to the type instant in MarshalJSON.
type instant time.Time

func (i instant) MarshalText() ([]byte, error) {
	return time.Time(i).UTC().AppendFormat(nil, Milliseconds), nil
}
