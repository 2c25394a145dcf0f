package wire

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"capper/client/api"
	"capper/internal/capping"
	"capper/internal/ids"
)

// ImportRequest is the decoded body of POST /v1/sends, which imports sends that other systems recorded.
type ImportRequest struct {
	Sends    []importedSend
	Given    *Given   // id of each send for the response; nil: dense ids as numbers
	Messages []string // message ids; index 0 means no message id
	Channels []string // channel names; index 0 means no channel

	common int // index in Channels for sends without a channel of their own
}

// importedSend is one send of an import.
type importedSend struct {
	User    capping.UserID
	At      capping.Instant // may be before 2024
	Message int             // index in Messages
	Channel int             // index in Channels
	Image   bool            // the request listed an image instead of an id
}

// UserBytes returns the size in bytes of one user id in the response, including a comma.
func (r *ImportRequest) UserBytes() int64 {
	if r.Given == nil {
		return int64(len("4294967295,"))
	}
	return int64(r.Given.bytesOf(len(r.Sends)))
}

// Bytes returns the memory in bytes of the ids that the request keeps for the response.
func (r *ImportRequest) Bytes() int64 {
	if r.Given == nil {
		return 0
	}
	return r.Given.size() + sendBytes*int64(len(r.Sends))
}

// importAnswer is api.ImportAnswer with ids of every kind.
type importAnswer struct {
	Unavailable []json.RawMessage `json:"unavailable"`
	Summary     api.ImportSummary `json:"summary"`
}

// The method Answer returns the response to a call that imports sends. The argument "unavailable" lists, in ascending
// order, the users whose sends the store may or may not have recorded. The response lists the id of each such user
// once.
func (r *ImportRequest) Answer(unavailable []capping.UserID, sum api.ImportSummary) any {
	if r.Given == nil {
		return &api.ImportAnswer{Unavailable: capping.AppendDense([]uint32{}, unavailable), Summary: sum}
	}
	answer, named := &importAnswer{Unavailable: []json.RawMessage{}, Summary: sum}, map[string]bool{}
	for i := range r.Sends {
		user := r.Sends[i].User
		if len(unavailable) == 0 {
			break
		}
		if _, found := slices.BinarySearch(unavailable, user); !found {
			continue
		}
		if id := r.nameOf(i); !named[id] { // if two ids have the same image, the response lists both ids
			named[id] = true
			answer.Unavailable = append(answer.Unavailable, json.RawMessage(id))
		}
	}
	return answer
}

// nameOf returns the user id or image of the send with the index i as a JSON value, as in the request.
func (r *ImportRequest) nameOf(i int) string {
	if send := &r.Sends[i]; send.Image {
		return strconv.Quote(ids.ImageName(uint64(send.User)))
	}
	return r.Given.name(i, r.Sends[i].User)
}

// The type "names" collects distinct names (message ids or channels), and gives each name an index.
type names struct {
	all    []string
	places map[string]int
}

func newNames() names { return names{[]string{""}, map[string]int{"": 0}} }

func (n *names) place(name []byte) int {
	place, known := n.places[string(name)]
	if !known {
		place = len(n.all)
		n.all = append(n.all, string(name))
		n.places[n.all[place]] = place
	}
	return place
}

// importDecoder decodes the sends of an import.
type importDecoder struct {
	*decoder
	latest             capping.Instant
	messages, channels names
	sends              []importedSend
	userIDs            *givenDecoder
	named              bool // the response lists ids that the decoder keeps
}

const (
	sendBytes    = 40 // memory in bytes for each send
	shortestSend = 40 // size in bytes of the shortest send in JSON
)

// DecodeImport strictly decodes the body of POST /v1/sends. DecodeImport rejects a send whose time is after the
// argument "latest". If the time of a send is between "now" and "latest", and the send has a message id, DecodeImport
// replaces the time by "now". DecodeImport rejects a send with a future time and no message id, because only the time
// identifies such a send. The caller of DecodeImport checks whether the policy has the channels of the sends.
func DecodeImport(body []byte, bounds Bounds, now, latest time.Time) (*ImportRequest, error) {
	d := &importDecoder{decoder: newDecoder(body, bounds, api.ImportRequest{}), latest: capping.InstantOf(latest),
		messages: newNames(), channels: newNames()}
	d.userIDs = d.importedIDs()
	message, channel := 0, 0
	err := d.document(func(name string) (err error) {
		if err := d.markSeen(name); err != nil {
			return err
		}
		switch name {
		case "message_id":
			message, err = d.message(name)
		case "channel":
			channel, err = d.channelOf(name)
		case "sends":
			err = d.array()
		default:
			err = d.unknown(name)
		}
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case len(d.sends) == 0:
		return nil, Invalid("sends", "is empty: at least one send is required")
	}
	current := capping.InstantOf(now)
	for i := range d.sends {
		send := &d.sends[i]
		if send.Message == 0 {
			send.Message = message
		}
		if send.Message == 0 && send.At > current {
			return nil, Invalid(fmt.Sprintf("sends[%d].at", i),
				"%s is later than the clock of the service, %s: a send without a message_id is identified by its "+
					"time, so repeat it later, or add its message_id",
				send.At.Time().Format(api.Milliseconds), current.Time().Format(api.Milliseconds))
		}
		send.At = min(send.At, current)
		if send.Channel == 0 {
			send.Channel = channel
		}
	}
	r := &ImportRequest{Sends: d.sends, Messages: d.messages.all, Channels: d.channels.all, common: channel}
	if d.named {
		r.Given = d.userIDs.given
	}
	return r, nil
}

// importedIDs returns the decoder for the user ids of imported sends.
func (d *importDecoder) importedIDs() *givenDecoder {
	scheme := d.bounds.Scheme
	if scheme == nil {
		scheme = new(ids.Scheme)
	}
	d.named = d.bounds.Scheme != nil
	return &givenDecoder{decoder: d.decoder, kind: scheme.Kind(), parser: scheme.NewParser(),
		path: func() string { return d.path("user_id") }, given: &Given{scheme: scheme}}
}

// The method array decodes the array of sends.
func (d *importDecoder) array() error {
	const field = "sends"
	if !d.accept('[') {
		return Invalid(field, "%s is not an array of sends", d.value())
	}
	if d.accept(']') {
		return nil
	}
	room := min((len(d.data)-d.pos)/shortestSend+1, d.bounds.IDs)
	if err := d.bounds.Reserve(int64(room)*sendBytes + d.userIDs.reserved(room)); err != nil {
		return err
	}
	d.sends = make([]importedSend, 0, room)
	d.userIDs.allocate(room)
	for {
		if len(d.sends) == d.bounds.IDs {
			return FieldFailure(api.CodeTooLarge, field, "has more than %d sends: split the batch", d.bounds.IDs)
		}
		send, err := d.send()
		if err != nil {
			return err
		}
		d.sends = append(d.sends, send)
		if d.accept(']') {
			return nil
		}
		if !d.accept(',') {
			return d.syntax("',' or ']'")
		}
	}
}

// The method path returns the JSON path of a field in the current send.
func (d *importDecoder) path(name string) string {
	path := "sends[" + strconv.Itoa(len(d.sends)) + "]"
	if name != "" {
		path += "." + name
	}
	return path
}

// These constants assign a bit to each field of an imported send. The bits of a send show which fields the send has.
const (
	sendUser = 1 << iota
	sendImage
	sendAt
	sendChannel
	sendMessage
)

// The method send decodes one send of an import. To save time, the method send recognises a field with a few
// comparisons, and builds JSON paths only for errors.
func (d *importDecoder) send() (send importedSend, err error) {
	if !d.accept('{') {
		return send, Invalid(d.path(""), "%s is not an object", d.value())
	}
	seen := 0
	if !d.accept('}') {
		err = d.members(func(name string) (err error) {
			field := fieldOf(name)
			if field&seen != 0 {
				return Invalid(d.path(name), "the field is given twice")
			}
			seen |= field
			switch field {
			case sendUser:
				send.User, err = d.user()
			case sendImage:
				send.User, err = d.image()
				send.Image = true
			case sendAt:
				send.At, err = d.sentAt()
			case sendChannel:
				send.Channel, err = d.channelOf("")
			case sendMessage:
				send.Message, err = d.message("")
			default:
				err = Invalid(d.path(Clip([]byte(name))),
					"a send has no such field: its fields are user_id, image, at, channel and message_id")
			}
			return err
		})
	}
	switch {
	case err != nil:
		return send, err
	case seen&sendUser != 0 && send.Image:
		return send, Invalid(d.path("image"), "must not be combined with user_id")
	case seen&(sendUser|sendImage) == 0:
		return send, Invalid(d.path("user_id"), "is required: the user who received the message")
	case seen&sendAt == 0:
		return send, Invalid(d.path("at"), "is required: the time of the send")
	}
	return send, nil
}

func fieldOf(name string) int {
	switch name {
	case "user_id":
		return sendUser
	case "image":
		return sendImage
	case "at":
		return sendAt
	case "channel":
		return sendChannel
	case "message_id":
		return sendMessage
	}
	return 0
}

// The method user decodes the user id of a send.
func (d *importDecoder) user() (capping.UserID, error) {
	d.skipSpace()
	if d.bounds.Scheme == nil {
		if user, end := number(d.data, d.pos); end >= 0 {
			d.pos = end
			return user, nil
		}
		d.named = true // without effect if this id is invalid
	}
	if err := d.userIDs.one(); err != nil {
		return 0, err
	}
	user := d.userIDs.users[0]
	d.userIDs.users = d.userIDs.users[:0]
	return user, nil
}

// The method image decodes the id image (64-bit keyed hash of an id) of a send's user, for a caller that does not know
// the id.
func (d *importDecoder) image() (capping.UserID, error) {
	field := d.path("image")
	if d.bounds.Scheme == nil {
		return 0, Invalid(field, "this deployment's ids are dense (32-bit numbers): use user_id")
	}
	text, err := d.str(field)
	if err != nil {
		return 0, err
	}
	user, ok := parseImage(string(text))
	if !ok {
		return 0, Invalid(field, "%q is not an id image: an id image has 16 hexadecimal digits in lower case",
			Clip(text))
	}
	d.userIDs.given.skip()
	return user, nil
}

// The method "plain" decodes a JSON string. Error texts contain the argument "field" as the JSON path of the string. If
// "field" is "", error texts contain the path of the field "name" in the current send.
func (d *importDecoder) plain(field, name string) ([]byte, error) {
	if field == "" {
		field = d.path(name)
	}
	return d.str(field)
}

func (d *importDecoder) message(field string) (int, error) {
	id, err := d.plain(field, "message_id")
	switch {
	case err != nil:
		return 0, err
	case len(id) == 0 || len(id) > api.MaxMessageID:
		if field == "" {
			field = d.path("message_id")
		}
		return 0, Invalid(field, "has %d bytes and must have 1 to %d: leave the field out for none", len(id),
			api.MaxMessageID)
	}
	return d.messages.place(id), nil
}

func (d *importDecoder) channelOf(field string) (int, error) {
	name, err := d.plain(field, "channel")
	switch {
	case err != nil:
		return 0, err
	case len(name) == 0:
		if field == "" {
			field = d.path("channel")
		}
		return 0, d.bounds.emptyChannel(field)
	}
	return d.channels.place(name), nil
}

// sentAt decodes the time of a send.
func (d *importDecoder) sentAt() (capping.Instant, error) {
	text, err := d.plain("", "at")
	if err != nil {
		return 0, err
	}
	at, err := time.Parse(time.RFC3339, string(text))
	if err != nil || !looksRFC3339(text) {
		return 0, Invalid(d.path("at"), "%q is not an RFC 3339 time such as 2026-11-20T09:12:44.120Z",
			Clip(text))
	}
	instant := capping.InstantOf(at)
	if instant > d.latest {
		return 0, Invalid(d.path("at"), "%s is in the future: the time is now %s", Clip(text),
			d.latest.Time().Format(api.Milliseconds))
	}
	return instant, nil
}

// looksRFC3339 checks the form of a text that package time has accepted as a time. The function looksRFC3339 is faster
// than the regular expression rfc3339. The function looksRFC3339 requires two digits for each number, four digits for
// the year, and a point before the fraction.
func looksRFC3339(text []byte) bool {
	const form = "2006-01-02T15:04:05"
	if len(text) < len(form)+1 {
		return false
	}
	for i := range form {
		if digit := text[i] - '0'; form[i] >= '0' && form[i] <= '9' {
			if digit > 9 {
				return false
			}
		} else if text[i] != form[i] {
			return false
		}
	}
	rest := text[len(form):]
	if rest[0] == '.' {
		n := 1
		for n < len(rest) && rest[n]-'0' <= 9 {
			n++
		}
		if n == 1 {
			return false
		}
		rest = rest[n:]
	}
	if len(rest) == 1 {
		return rest[0] == 'Z'
	}
	return len(rest) == 6 && (rest[0] == '+' || rest[0] == '-') && string(rest[1:3]) <= "23" && rest[3] == ':' &&
		rest[4] <= '5'
}
