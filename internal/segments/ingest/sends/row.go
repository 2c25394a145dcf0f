package sends

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Row is one send.
type Row struct {
	User      uint32
	At        int64 // milliseconds since 1970
	Channel   string
	MessageID string
}

// RowError is why a row is no send.
type RowError struct {
	Line int64 // or row, of formats without lines; counted from 1
	Err  error
}

// Error has the line.
func (e *RowError) Error() string { return fmt.Sprintf("%d: %s", e.Line, e.Err) }

// Unwrap is the fault.
func (e *RowError) Unwrap() error { return e.Err }

// MaxName is the most bytes of a message id, as the service takes it.
const MaxName = 128

func userOf(text string) (uint32, error) {
	user, err := strconv.ParseUint(strings.TrimSpace(text), 10, 32)
	if err != nil {
		return 0, fmt.Errorf("%q is not a user id (0 to 4294967295)", clip(text))
	}
	return uint32(user), nil
}

func clip(text string) string {
	if len(text) > 60 {
		return text[:60] + "…"
	}
	return text
}

// The layouts of times; a fraction is read behind each.
var (
	zoned = []string{"2006-01-02T15:04:05Z07:00", "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05 Z07:00", "2006-01-02 15:04:05 MST", "2006-01-02 15:04:05-07"}
	naive = []string{"2006-01-02T15:04:05", "2006-01-02 15:04:05"}
)

var errZone = errors.New("has no offset from UTC: --timezone says where its clock stood")

// timeOf is the text in milliseconds since 1970. zone nil: a time needs an offset.
func timeOf(text string, zone *time.Location) (int64, error) {
	text = strings.TrimSpace(text)
	if at, ok := epochOf(text); ok {
		return at, nil
	}
	for _, layout := range zoned {
		at, err := time.Parse(layout, text)
		if name, _ := at.Zone(); err == nil && (!strings.HasSuffix(layout, "MST") || name == "UTC") { // other letters say nothing for certain
			return at.UnixMilli(), nil
		}
	}
	for _, layout := range naive {
		at, err := time.ParseInLocation(layout, text, orUTC(zone))
		switch {
		case err == nil && zone == nil:
			return 0, fmt.Errorf("%q %w", clip(text), errZone)
		case err == nil:
			return at.UnixMilli(), nil
		}
	}
	return 0, fmt.Errorf("%q is not a time, such as 2026-11-20T09:12:44.120Z, or seconds or milliseconds since 1970", clip(text))
}

func orUTC(zone *time.Location) *time.Location {
	if zone == nil {
		return time.UTC
	}
	return zone
}

// epochOf reads seconds, which may have a fraction, or milliseconds since 1970. Eight digits are of the years 1970 to
// 1973, and rather a date such as 20261120: they are no time.
func epochOf(text string) (int64, bool) {
	whole, fraction, broken := strings.Cut(text, ".")
	n, err := strconv.ParseUint(whole, 10, 63)
	switch {
	case err != nil || len(whole) == 8 || len(whole) > 13:
		return 0, false
	case len(whole) >= 12:
		return int64(n), !broken
	case !broken:
		return 1000 * int64(n), true
	}
	if fraction == "" || strings.Trim(fraction, "0123456789") != "" {
		return 0, false
	}
	millis, _ := strconv.ParseInt((fraction + "000")[:3], 10, 64) // digits, as was seen
	return 1000*int64(n) + millis, true
}

// check completes a row and says why it is none.
func (o *Options) check(r *Row) error {
	if r.Channel == "" {
		r.Channel = o.Channel
	}
	if r.MessageID == "" {
		r.MessageID = o.MessageID
	}
	switch {
	case len(r.MessageID) > MaxName:
		return fmt.Errorf("message id of %d bytes: at most %d are allowed", len(r.MessageID), MaxName)
	case !utf8.ValidString(r.MessageID):
		return fmt.Errorf("message id %q is not UTF-8", clip(r.MessageID))
	case r.At > o.Now.UnixMilli()+1000:
		return fmt.Errorf("%s is in the future", time.UnixMilli(r.At).UTC().Format(time.RFC3339))
	case o.Channels != nil && r.Channel != "" && !o.Channels[r.Channel]:
		return fmt.Errorf("channel %q is not configured", clip(r.Channel))
	}
	return nil
}
