package server

import (
	"bytes"
	"encoding/base64"
	"regexp"
	"slices"
	"strings"
	"time"

	"capper/internal/bitmap"
	"capper/internal/capping"
)

// maxMessageID is the most bytes of a message id.
const maxMessageID = 128

// audience is the users of a request.
type audience struct {
	users      []capping.UserID // distinct, in the order of the request; not pooled: a store may read it after the call
	bitmap     bool             // they came as a bitmap: ascending, and the answer is bitmaps
	duplicates int              // ids that were repeats of earlier ones
}

// filterRequest is a decoded POST /v1/filter.
type filterRequest struct {
	audience
	messageID string
	channel   string
	enforce   bool
	record    bool
	counts    bool // detail is "counts"
	waves     bool
	at        string
}

// releaseRequest is a decoded POST /v1/release.
type releaseRequest struct {
	audience
	messageID string
	channel   string // "": all
}

// decoder reads the members of a request.
type decoder struct {
	scanner
	bounds Bounds
	seen   map[string]bool
	given  audience
	room   func(bytes int64) error // makes sure of memory before it is taken
}

func newDecoder(body []byte, bounds Bounds, room func(int64) error) *decoder {
	return &decoder{scanner: scanner{data: body}, bounds: bounds, seen: make(map[string]bool, 8), room: room}
}

// decodeFilter reads a body strictly. What needs the policy or the clock,
// channel and at, is checked by the caller.
func decodeFilter(body []byte, bounds Bounds, room func(int64) error) (*filterRequest, error) {
	d := newDecoder(body, bounds, room)
	r := &filterRequest{enforce: true, record: true}
	err := d.document(func(name string) (err error) {
		if err := d.once(name); err != nil {
			return err
		}
		switch name {
		case "message_id":
			r.messageID, err = d.messageID()
		case "channel":
			r.channel, err = d.channel("a send without a channel")
		case "user_ids", "users_bitmap":
			err = d.users(name)
		case "enforce":
			r.enforce, err = d.boolean(name)
		case "record":
			r.record, err = d.boolean(name)
		case "detail":
			r.counts, err = d.detail()
		case "waves":
			r.waves, err = d.boolean(name)
		case "at":
			r.at, err = d.at()
		default:
			err = d.unknown(name)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if r.audience, err = d.audience(); err != nil {
		return nil, err
	}
	return r, d.together(r)
}

// together checks what fields say of each other.
func (d *decoder) together(r *filterRequest) error {
	switch {
	case r.record && r.messageID == "":
		return invalid("message_id", "it is missing: a send that is recorded needs one (1 to %d bytes)", maxMessageID)
	case !r.record && !r.enforce:
		return invalid("enforce", "false together with record false would neither decide nor count anything")
	case d.seen["at"] && r.record:
		return invalid("at", "it is allowed only with record false: a send is recorded now or not at all")
	}
	return nil
}

// decodeRelease reads a body strictly.
func decodeRelease(body []byte, bounds Bounds, room func(int64) error) (*releaseRequest, error) {
	d := newDecoder(body, bounds, room)
	r := &releaseRequest{}
	err := d.document(func(name string) (err error) {
		if err := d.once(name); err != nil {
			return err
		}
		switch name {
		case "message_id":
			r.messageID, err = d.messageID()
		case "channel":
			r.channel, err = d.channel("all sends of the id")
		case "user_ids", "users_bitmap":
			err = d.users(name)
		default:
			err = d.unknown(name)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if !d.seen["message_id"] {
		return nil, invalid("message_id", "it is missing: it names the send to release (1 to %d bytes)", maxMessageID)
	}
	r.audience, err = d.audience()
	return r, err
}

func (d *decoder) once(name string) error {
	if d.seen[name] {
		return invalid(clip([]byte(name)), "the field is given twice")
	}
	d.seen[name] = true
	return nil
}

func (d *decoder) unknown(name string) error {
	for _, known := range []string{"message_id", "channel", "user_ids", "users_bitmap", "enforce", "record", "detail", "waves", "at"} {
		if strings.EqualFold(name, known) {
			return invalid(name, "this call has no such field (names are lower case, and not all calls have all fields)")
		}
	}
	return invalid(clip([]byte(name)), "this call has no such field")
}

func (d *decoder) messageID() (string, error) {
	id, err := d.str("message_id")
	if err == nil && (len(id) == 0 || len(id) > maxMessageID) {
		err = invalid("message_id", "it has %d bytes, 1 to %d are allowed", len(id), maxMessageID)
	}
	return string(id), err
}

// channel reads the name of a channel; without tells what leaving it out means.
func (d *decoder) channel(without string) (string, error) {
	name, err := d.str("channel")
	if err == nil && len(name) == 0 {
		err = invalid("channel", "it is empty: leave the field out for %s", without)
	}
	return string(name), err
}

func (d *decoder) detail() (counts bool, err error) {
	text, err := d.str("detail")
	if err != nil {
		return false, err
	}
	switch string(text) {
	case "denials":
		return false, nil
	case "counts":
		return true, nil
	}
	return false, invalid("detail", `%q is neither "denials" nor "counts"`, clip(text))
}

func (d *decoder) at() (string, error) {
	at, err := d.str("at")
	if err == nil && len(at) == 0 {
		err = invalid("at", "it is empty: leave the field out to decide as of now")
	}
	return string(at), err
}

func (d *decoder) users(name string) (err error) {
	if d.seen["user_ids"] && d.seen["users_bitmap"] {
		return invalid(name, "user_ids and users_bitmap are both given: exactly one of them is needed")
	}
	if err := d.room(int64(len(d.data))); err != nil { // the ids of JSON, or the bytes of base64
		return err
	}
	if name == "user_ids" {
		d.given.users, err = d.ids(name, make([]capping.UserID, 0, d.capacity()), d.bounds.JSONUsers)
		return err
	}
	text, err := d.str(name)
	if err != nil {
		return err
	}
	d.given.bitmap = true
	d.given.users, err = bitmapUsers(name, text, d.bounds.BitmapUsers, d.room)
	return err
}

// capacity estimates the ids of the array ahead: most ids of real audiences
// have 5 digits or more.
func (d *decoder) capacity() int {
	return min((len(d.data)-d.pos)/6+8, d.bounds.JSONUsers)
}

// audience is the users given, each once.
func (d *decoder) audience() (audience, error) {
	if !d.seen["user_ids"] && !d.seen["users_bitmap"] {
		return audience{}, invalid("user_ids", "neither user_ids nor users_bitmap is given: exactly one of them is needed")
	}
	a := d.given
	if len(a.users) == 0 {
		field := "user_ids"
		if a.bitmap {
			field = "users_bitmap"
		}
		return audience{}, invalid(field, "the batch is empty: at least one user is needed")
	}
	if !ascending(a.users) {
		a.users, a.duplicates = capping.Distinct(a.users)
	}
	return a, nil
}

// ascending reports whether every id is greater than the one before it.
func ascending(users []capping.UserID) bool {
	for i := 1; i < len(users); i++ {
		if users[i-1] >= users[i] {
			return false
		}
	}
	return true
}

// bitmapUsers reads the ids of a base64 roaring bitmap, at most limit. Nothing
// is expanded before every byte has been checked.
func bitmapUsers(field string, text []byte, limit int, room func(int64) error) ([]capping.UserID, error) {
	if bytes.ContainsAny(text, "\r\n") { // the package skips line ends
		return nil, invalid(field, "line ends are not base64")
	}
	raw := make([]byte, base64.StdEncoding.DecodedLen(len(text)))
	n, err := base64.StdEncoding.Strict().Decode(raw, text)
	if err != nil {
		return nil, invalid(field, "it is not padded standard base64 (RFC 4648): %s", err)
	}
	bitmap, err := bitmap.Read(raw[:n])
	if err != nil {
		return nil, invalid(field, "it is not a portable roaring bitmap of 32-bit ids: %s", err)
	}
	if bitmap.Cardinality() > uint64(limit) {
		return nil, fieldFailure(CodeTooLarge, field, "%d users, at most %d are allowed: split the batch",
			bitmap.Cardinality(), limit)
	}
	if bitmap.Cardinality() == 0 {
		return nil, nil
	}
	if err := room(4 * int64(bitmap.Cardinality())); err != nil {
		return nil, err
	}
	return bitmap.Roaring().ToArray(), nil
}

// rfc3339 is the form of a time; the time package takes others too, such as
// hours of one digit.
var rfc3339 = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$`)

// forecastGrace is how far in the past the field at may be and still mean now:
// callers write whole seconds, take time to call, and have clocks of their own.
const forecastGrace = time.Minute

// forecastAt is the instant of the field at; 0, which is now, when it was not
// given or is no later than now.
func forecastAt(at string, now time.Time) (capping.Instant, error) {
	if at == "" {
		return 0, nil
	}
	t, err := time.Parse(time.RFC3339, at)
	if err != nil || !rfc3339.MatchString(at) {
		return 0, invalid("at", "%q is not a time as RFC 3339 writes it, like 2026-11-21T09:00:00Z", clip([]byte(at)))
	}
	instant, current := capping.InstantOf(t), capping.InstantOf(now)
	switch {
	case instant < capping.InstantOf(now.Add(-forecastGrace)):
		return 0, invalid("at", "%s is in the past by more than a minute: it is %s", at, current.Time().Format(milliseconds))
	case instant <= current:
		return 0, nil
	case instant >= capping.Never:
		return 0, invalid("at", "%s is too late: times before %s can be decided", at, capping.Never.Time().Format(time.RFC3339))
	}
	return instant, nil
}

// channelOf is the number of the request's channel in the policy.
func channelOf(name string, policy *capping.Policy) (capping.Channel, error) {
	if name == "" {
		return 0, nil
	}
	if channel, ok := policy.Channels[name]; ok {
		return channel, nil
	}
	known := make([]string, 0, len(policy.Channels))
	for channel := range policy.Channels {
		known = append(known, channel)
	}
	slices.Sort(known)
	return 0, invalid("channel", "%q is not configured (there are: %s)", clip([]byte(name)), strings.Join(known, ", "))
}
