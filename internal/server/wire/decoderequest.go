package wire

import (
	"reflect"
	"strings"

	"capper/client/api"
	"capper/internal/ids"
	"capper/internal/messages"
)

// The type Bounds holds the maximum numbers of users in a request, and the rules for ids and channels.
type Bounds struct {
	IDs     int                     // maximum number of users in user_ids
	Bitmap  int                     // maximum number of users in users_bitmap and of an audience expression
	Reserve func(bytes int64) error // called before memory is allocated
	// If NeedsChannel is true, the configuration requires a channel for each send, and error texts do not suggest to
	// leave out the channel.
	NeedsChannel bool
	// Scheme parses user ids. A nil Scheme means dense ids.
	Scheme *ids.Scheme
}

// FilterRequest is the decoded body of POST /v1/filter.
type FilterRequest struct {
	Audience
	MessageID string
	Channel   string
	Enforce   bool
	Record    bool
	Counts    bool // the field detail is "counts"
	Waves     bool
	At        string
}

// MessageRequest is the decoded body of POST /v1/release or POST /v1/sends/check. The body of a release or check names
// a message and a list of users.
type MessageRequest struct {
	Audience
	MessageID string
	Channel   string // "": all channels in a release, otherwise a send without a channel
}

// A decoder decodes the fields of a request body, which is a JSON object.
type decoder struct {
	scanner
	bounds Bounds
	body   any // a value of the type in package api that clients encode as this body
	seen   map[string]bool
	given  Audience
	asked  api.AudienceQuery
	// If keepsPacked is true, the response lists packed ids of the request instead of positions.
	keepsPacked bool
}

// newDecoder returns a decoder for a request body. The argument "as" is a value of the type in package api that
// describes the body, such as api.FilterRequest{}.
func newDecoder(body []byte, bounds Bounds, as any) *decoder {
	return &decoder{scanner: scanner{data: body}, bounds: bounds, body: as, seen: make(map[string]bool, 8)}
}

// DecodeFilter strictly decodes the body of POST /v1/filter. The caller of DecodeFilter must check the fields
// "channel" and "at", because this check needs the policy and the clock.
func DecodeFilter(body []byte, bounds Bounds) (*FilterRequest, error) {
	d := newDecoder(body, bounds, api.FilterRequest{})
	r := &FilterRequest{Enforce: true, Record: true}
	err := d.document(func(name string) (err error) {
		if err := d.markSeen(name); err != nil {
			return err
		}
		switch name {
		case "message_id":
			r.MessageID, err = d.messageID()
		case "channel":
			r.Channel, err = d.sendChannel(name)
		case "user_ids", "users_bitmap", "users_packed":
			err = d.users(name)
		case "enforce":
			r.Enforce, err = d.boolean(name)
		case "record":
			r.Record, err = d.boolean(name)
		case "detail":
			r.Counts, err = d.detail(api.DetailDenials, api.DetailCounts)
		case "waves":
			r.Waves, err = d.boolean(name)
		case "at":
			r.At, err = d.at()
		default:
			err = d.queryOrUnknown(name)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if r.Audience, err = d.audience(); err != nil {
		return nil, err
	}
	return r, d.checkCombination(r)
}

// checkCombination returns an error if the fields of a filter request contradict each other.
func (d *decoder) checkCombination(r *FilterRequest) error {
	switch {
	case r.Record && r.MessageID == "":
		return Invalid("message_id", "is required for a send that is recorded (1 to %d bytes)",
			api.MaxMessageID)
	case !r.Record && !r.Enforce:
		return Invalid("enforce", "must not be false together with record false, because the call would "+
			"neither decide nor record anything")
	case d.seen["at"] && r.Record:
		return Invalid("at", "requires record false, because a send is always recorded at the current time")
	}
	return nil
}

// DecodeRelease strictly decodes the body of POST /v1/release.
func DecodeRelease(body []byte, bounds Bounds) (*MessageRequest, error) {
	d := newDecoder(body, bounds, api.ReleaseRequest{})
	return d.message(&bodyOfMessage{
		noChannel: "all sends of the id", purpose: "it names the send to release", other: d.queryOrUnknown,
	})
}

// bodyOfMessage holds the differences between the bodies of POST /v1/release and POST /v1/sends/check.
type bodyOfMessage struct {
	noChannel string                  // meaning of an absent channel, for error texts
	purpose   string                  // purpose of the message id, for error texts
	other     func(name string) error // decodes a field other than the message and its users
}

func (d *decoder) message(of *bodyOfMessage) (*MessageRequest, error) {
	r := &MessageRequest{}
	err := d.document(func(name string) (err error) {
		if err := d.markSeen(name); err != nil {
			return err
		}
		switch name {
		case "message_id":
			r.MessageID, err = d.messageID()
		case "channel":
			r.Channel, err = d.channel(of.noChannel)
		case "user_ids", "users_bitmap", "users_packed":
			err = d.users(name)
		default:
			err = of.other(name)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if !d.seen["message_id"] {
		return nil, Invalid("message_id", "is required: %s (1 to %d bytes)", of.purpose, api.MaxMessageID)
	}
	r.Audience, err = d.audience()
	return r, err
}

// DecodeReleaseMessage strictly decodes the body of a call that releases all sends of a message. The result of
// DecodeReleaseMessage is the channel, or "" for all channels.
func DecodeReleaseMessage(body []byte) (channel string, err error) {
	d := newDecoder(body, Bounds{}, api.ReleaseMessageRequest{})
	err = d.document(func(name string) (err error) {
		if err := d.markSeen(name); err != nil {
			return err
		}
		if name != "channel" {
			return d.unknown(name)
		}
		channel, err = d.channel("all sends of the message")
		return err
	})
	return channel, err
}

// DecodeTitle strictly decodes the body of a call that sets the title of a message.
func DecodeTitle(body []byte) (title string, err error) {
	d := newDecoder(body, Bounds{}, api.TitleRequest{})
	err = d.document(func(name string) error {
		if err := d.markSeen(name); err != nil {
			return err
		}
		if name != "title" {
			return d.unknown(name)
		}
		text, err := d.str("title")
		if err != nil {
			return err
		}
		if title, err = messages.CheckTitle(string(text)); err != nil {
			return Invalid("title", "%s", err)
		}
		return nil
	})
	if err == nil && !d.seen["title"] {
		err = Invalid("title", `is required; "" removes the title`)
	}
	return title, err
}

func (d *decoder) markSeen(name string) error {
	if d.seen[name] {
		return Invalid(Clip([]byte(name)), "the field is given twice")
	}
	d.seen[name] = true
	return nil
}

// queryOrUnknown decodes a field of an audience query (api.AudienceQuery), and rejects any other field as unknown.
func (d *decoder) queryOrUnknown(name string) error {
	known, err := d.query(name)
	if !known {
		return d.unknown(name)
	}
	return err
}

// The method unknown returns the error for a field that the request body must not have.
func (d *decoder) unknown(name string) error {
	fields := fieldsOf(reflect.TypeOf(d.body))
	for _, field := range fields {
		if strings.EqualFold(name, field) {
			return Invalid(name, "this call has no such field: field names are lower case")
		}
	}
	return Invalid(Clip([]byte(name)), "this call has no such field; its fields are %s", strings.Join(fields, ", "))
}

// fieldsOf returns the JSON names of a struct's fields, including the fields of embedded structs.
func fieldsOf(body reflect.Type) (names []string) {
	for _, field := range reflect.VisibleFields(body) {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" && name != "-" {
			names = append(names, name)
		}
	}
	return names
}

func (d *decoder) messageID() (string, error) { return d.id("message_id", api.MaxMessageID) }

// The method id decodes an id that the caller chose, such as a message id. The argument "most" is the maximum length of
// the id in bytes.
func (d *decoder) id(field string, most int) (string, error) {
	id, err := d.str(field)
	if err == nil && (len(id) == 0 || len(id) > most) {
		err = Invalid(field, "has %d bytes and must have 1 to %d", len(id), most)
	}
	return string(id), err
}

// The method channel decodes the name of a channel. The argument "without" says, in the error text, what an absent
// channel means.
func (d *decoder) channel(without string) (string, error) {
	name, err := d.str("channel")
	if err == nil && len(name) == 0 {
		err = Invalid("channel", "must not be empty: leave the field out for %s", without)
	}
	return string(name), err
}

// sendChannel decodes the channel name of a send that a call records or looks for.
func (d *decoder) sendChannel(field string) (string, error) {
	name, err := d.str("channel")
	if err == nil && len(name) == 0 {
		err = d.bounds.emptyChannel(field)
	}
	return string(name), err
}

// emptyChannel returns the failure of a request whose channel is the empty string.
func (b *Bounds) emptyChannel(field string) error {
	if b.NeedsChannel {
		return Invalid(field, "must not be empty, because the configuration requires a channel")
	}
	return Invalid(field, "must not be empty: leave the field out for a send without a channel")
}

// The method detail decodes the field "detail", which has two possible values. The result is false if the value is the
// argument "usual", and true if the value is the argument "other".
func (d *decoder) detail(usual, other string) (given bool, err error) {
	text, err := d.str("detail")
	if err != nil {
		return false, err
	}
	switch string(text) {
	case usual:
		return false, nil
	case other:
		return true, nil
	}
	return false, Invalid("detail", "%q must be %q or %q", Clip(text), usual, other)
}

func (d *decoder) at() (string, error) {
	at, err := d.str("at")
	if err == nil && len(at) == 0 {
		err = Invalid("at", "must not be empty: leave the field out to decide for the current time")
	}
	return string(at), err
}
