package format

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"capper/internal/capping"
	"capper/internal/ids"
)

// A SendRow is one send (message to a user) that another system made.
type SendRow struct {
	User      capping.UserID
	ID        string // canonical id of the user; "" for dense ids, because User is the id
	Image     string // ids.ImageText, if the row names the user by an image; ID is then ids.ImageName
	At        int64  // milliseconds since 1970
	Channel   string
	MessageID string
	Namespace string // "": the namespace without a name
}

// NoColumnError reports that a file about sends has no column with a requested or usual name.
type NoColumnError struct{ text string }

func (e *NoColumnError) Error() string { return e.text }

// A RowError reports a row of a file about sends that is not a valid send, with the reason.
type RowError struct {
	Line int64 // number of the line, or of the row in formats without lines; counted from 1
	Err  error
}

// Error returns the number of the line and the reason.
func (e *RowError) Error() string { return fmt.Sprintf("%d: %s", e.Line, e.Err) }

// Unwrap returns the reason.
func (e *RowError) Unwrap() error { return e.Err }

// maxName is the maximum length of a message id in bytes, as in the service.
const maxName = 128

// zoned lists the layouts of times with an offset from UTC, and naive lists the layouts of times without an offset. The
// layouts zoned and naive also accept a fraction of a second.
var (
	zoned = []string{"2006-01-02T15:04:05Z07:00", "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05 Z07:00",
		"2006-01-02 15:04:05 MST", "2006-01-02 15:04:05-07"}
	naive = []string{"2006-01-02T15:04:05", "2006-01-02 15:04:05"}
)

var errZone = errors.New("the time has no offset from UTC: set its time zone with --timezone")

// The variable "earliest" is the earliest valid time of a send. A row with an earlier time usually has another number
// in place of the time: a date such as 20261120, a count of days, or zero.
var earliest = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// timeOf parses the time of a send into milliseconds since 1970. If the argument "zone" is nil, the time must have an
// offset from UTC.
func timeOf(text string, zone *time.Location) (int64, error) {
	text = strings.TrimSpace(text)
	at, err := instantOf(text, zone)
	if err == nil && at < earliest.UnixMilli() {
		return 0, fmt.Errorf("%q means %s, but the time of a send must not be before the year 2000: "+
			"use a time such as 2026-11-20T09:12:44.120Z, or seconds or milliseconds since 1970",
			Clip([]byte(text)), time.UnixMilli(at).UTC().Format(time.RFC3339))
	}
	return at, err
}

func instantOf(text string, zone *time.Location) (int64, error) {
	if at, ok := epochOf(text); ok {
		return at, nil
	}
	for _, layout := range zoned {
		at, err := time.Parse(layout, text)
		// The parser accepts no other abbreviations of time zones, because they are ambiguous.
		if name, _ := at.Zone(); err == nil && (!strings.HasSuffix(layout, "MST") || name == "UTC") {
			return at.UnixMilli(), nil
		}
	}
	for _, layout := range naive {
		wall, err := time.Parse(layout, text)
		if err != nil {
			continue
		}
		if zone == nil {
			return 0, fmt.Errorf("%q: %w", Clip([]byte(text)), errZone)
		}
		at, ok := latestAt(wall, zone)
		if !ok {
			return 0, fmt.Errorf("time %q does not exist in time zone %s, because the clocks skipped it there",
				Clip([]byte(text)), zone)
		}
		return at, nil
	}
	return 0, fmt.Errorf("%q: must be a time such as 2026-11-20T09:12:44.120Z, or seconds or milliseconds since 1970",
		Clip([]byte(text)))
}

// latestAt returns the latest instant at which clocks of a time zone showed the given time, in milliseconds since 1970.
// If clocks showed the time twice, latestAt returns the later instant, so that limits count the send for longer. If the
// clocks skipped the time, for example at the start of summer time, the result "found" is false. latestAt assumes that
// clocks change at most once within two days, and that no offset exceeds one day.
func latestAt(wall time.Time, zone *time.Location) (latest int64, found bool) {
	for _, side := range [2]time.Duration{-24 * time.Hour, 24 * time.Hour} {
		_, offset := wall.Add(side).In(zone).Zone()
		at := wall.Add(-time.Duration(offset) * time.Second)
		if _, then := at.In(zone).Zone(); then == offset && (!found || at.UnixMilli() > latest) {
			latest, found = at.UnixMilli(), true
		}
	}
	return latest, found
}

// epochOf parses a time of a send in seconds since 1970, with or without a fraction, or in milliseconds since 1970.
// epochOf rejects numbers of eight digits, because such a number is more likely a date such as 20261120 than seconds in
// the years 1970 to 1973. The function timeOf rejects other dates that look like numbers.
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
	millis, _ := strconv.ParseInt((fraction + "000")[:3], 10, 64) // the digits were checked above
	return 1000*int64(n) + millis, true
}

// rowOf converts the fields of a row to a send, and returns an error if the row is not a valid send.
func (r *sendReader) rowOf(fields *record) (row SendRow, err error) {
	if err := r.userOf(&row, fields[columnUser]); err != nil {
		return row, err
	}
	at, err := timeOf(string(fields[columnAt]), r.Zone)
	if err != nil {
		return row, fmt.Errorf("%s: %w", r.names[columnAt], err)
	}
	row.At, row.Channel = at, cmp.Or(string(fields[columnChannel]), r.Channel)
	row.MessageID = cmp.Or(string(fields[columnMessageID]), r.MessageID)
	if row.Namespace, err = r.namespaceOf(fields[columnNamespace]); err != nil {
		return row, err
	}
	switch now := r.Now.UnixMilli(); {
	case len(row.MessageID) > maxName:
		return row, fmt.Errorf("message id must have at most %d bytes, got %d", maxName, len(row.MessageID))
	case !utf8.ValidString(row.MessageID):
		return row, fmt.Errorf("message id %q must be valid UTF-8", Clip([]byte(row.MessageID)))
	case at > now+1000:
		return row, fmt.Errorf("%s: %s is in the future: the time is now %s",
			r.names[columnAt], stamp(at), stamp(now))
	case at > now && row.MessageID == "":
		return row, fmt.Errorf(
			"%s: %s is in the future: the time is now %s, and capper identifies a send without a message id by its "+
				"time",
			r.names[columnAt], stamp(at), stamp(now))
	case r.Channels != nil && row.Channel != "" && !r.Channels[row.Channel]:
		return row, fmt.Errorf("channel %q is not configured", Clip([]byte(row.Channel)))
	}
	return row, nil
}

// userOf parses the user id in a field and stores the user in the row. userOf ignores blanks around an id, except for
// the kind text.
func (r *sendReader) userOf(row *SendRow, field []byte) error {
	name, id := r.names[columnUser], bytes.TrimSpace(field)
	if r.parser == nil {
		user, ok := parseID(id)
		if !ok {
			return fmt.Errorf("%s: %q: must be a user id from 0 to 4294967295", name, Clip(field))
		}
		row.User = capping.UserID(user)
		return nil
	}
	if len(id) == 0 {
		return fmt.Errorf("%s is empty, but must be an id of the kind %s", name, r.Scheme.Kind())
	}
	if image, ok := ids.ParseImageName(string(id)); ok {
		row.User, row.ID, row.Image = capping.UserID(image), string(id), ids.ImageText(image)
		return nil
	}
	if r.Scheme.Kind() == ids.Text {
		id = field
	}
	image, err := r.parser.Parse(id)
	if err != nil {
		return fmt.Errorf("%s %w", name, err)
	}
	if r.id, err = r.Scheme.Canonical(r.id[:0], id); err != nil {
		return fmt.Errorf("%s %w", name, err)
	}
	row.User, row.ID = capping.UserID(image), string(r.id)
	return nil
}

// namespaceOf returns the namespace of a send from the row's field. If the field is empty, the send is in the namespace
// without a name. If the file has no field for the namespace, the namespace is SendOptions.Namespace.
func (r *sendReader) namespaceOf(field []byte) (string, error) {
	if field == nil {
		if r.Namespace == nil {
			return "", nil
		}
		return *r.Namespace, nil
	}
	found, name := string(field), r.names[columnNamespace]
	switch {
	case found != "" && !capping.IsName(found):
		return "", fmt.Errorf("%s: "+capping.NameRule, name, Clip([]byte(found)))
	case r.Namespace != nil && found != *r.Namespace:
		return "", fmt.Errorf("%s must be %q, the value of the flag --namespace, got %q", name, *r.Namespace, found)
	}
	return found, nil
}

func stamp(at int64) string { return time.UnixMilli(at).UTC().Format("2006-01-02T15:04:05.999Z07:00") }
