package wire

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"math"
	"slices"
	"unicode/utf8"

	"capper/client/api"
	"capper/internal/capping"
	"capper/internal/messages"
)

// AddAnswers adds the decisions of a call to the counts of the call's message.
func AddAnswers(to *messages.Answers, d *capping.Decisions, s *Summary, at capping.Instant) {
	to.AddCall(at, d.Policy.Version)
	to.Asked += int64(s.Requested)
	to.Allowed += int64(s.Allowed)
	to.Replayed += int64(s.Replayed)
	to.Unavailable += int64(s.Unavailable)
	for code := range s.byCode {
		if s.byCode[code].Requested > 0 {
			addSegment(to, segmentAt(d.Names, code), &s.byCode[code])
		}
	}
	if s.Denied > 0 {
		s.eachDenial(func(limit string, users int) { addUsers(&to.Denied, limit, users) })
		s.EachSet(func(set string, users int) { addUsers(&to.Suppressed, set, users) })
	}
	if s.shadows != nil {
		s.EachShadow(d.Names, func(_, limit string, users int) { addUsers(&to.Shadow, limit, users) })
	}
}

// The function Totals returns the numbers of users whom one call allowed, denied, or left without a decision. The
// result of Totals has no counts for segments, sets and shadow limits.
func Totals(s *Summary, at capping.Instant) *messages.Answers {
	call := &messages.Answers{Calls: 1, First: at, Last: at, Asked: int64(s.Requested), Allowed: int64(s.Allowed),
		Replayed: int64(s.Replayed), Unavailable: int64(s.Unavailable)}
	if s.Denied > 0 {
		s.eachDenial(func(limit string, users int) { addUsers(&call.Denied, limit, users) })
	}
	return call
}

func addSegment(to *messages.Answers, name string, counts *Counts) {
	if to.Segments == nil {
		to.Segments = make(map[string]messages.SegmentAnswers, 1)
	}
	segment := to.Segments[name] // a segment may have the same name as api.NoSegment
	segment.Asked += int64(counts.Requested)
	segment.Allowed += int64(counts.Allowed)
	segment.Denied += int64(counts.Denied)
	to.Segments[name] = segment
}

func segmentAt(names []string, code int) string {
	if code == 0 {
		return api.NoSegment
	}
	return SegmentName(names[code-1])
}

func addUsers(to *map[string]int64, name string, users int) {
	if *to == nil {
		*to = map[string]int64{}
	}
	(*to)[name] += int64(users)
}

// The function Message converts the decision counts of a message to the type of package api.
func Message(c *messages.Counts, policy *capping.Policy) api.Message {
	answer := api.Message{
		MessageID: c.Message.ID, Namespace: c.Message.Namespace, Title: c.Title, Channel: policy.ChannelName(c.Channel),
		Allowed: c.Recorded, Released: c.Released, AtLeast: c.AtLeast,
		Calls: c.Calls, Asked: c.Asked, Replayed: c.Replayed, Unavailable: c.Unavailable,
		Denied: map[string]int64{}, Suppressed: c.Suppressed, ShadowDenied: c.Shadow,
		Segments: map[string]api.MessageSegment{}, ConfigVersions: append([]string{}, c.Configs...),
	}
	for name, n := range c.Denied {
		answer.Denied[name] = n
	}
	for name, s := range c.Segments {
		answer.Segments[name] = api.MessageSegment(s)
	}
	if c.First > 0 {
		answer.FirstCall = c.First.Time()
	}
	if c.Last > 0 {
		answer.LastCall = c.Last.Time()
	}
	return answer
}

// messageOrders maps each sort order of the list of messages to its name in the API.
var messageOrders = []string{messages.ByLast: "last_call", messages.ByAsked: "asked"}

// MessageOrder decodes the query parameters "sort" and "cursor" of a call for a list of messages. For the first page,
// the result "after" of MessageOrder is nil.
func MessageOrder(parameters map[string]string) (order messages.Order, after *messages.Position, err error) {
	if text, given := parameters["sort"]; given {
		place := slices.Index(messageOrders, text)
		if place < 0 {
			return 0, nil, Invalid("sort", "%q must be last_call or asked", Clip([]byte(text)))
		}
		order = messages.Order(place)
	}
	text, given := parameters["cursor"]
	if !given {
		return order, nil, nil
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(raw) < cursorSize || len(raw) > cursorSize+capping.MaxMessageText ||
		!utf8.Valid(bytes.ReplaceAll(raw[cursorSize:], []byte{0xff}, nil)) {
		return 0, nil, Invalid("cursor", "%s is not the value of next in an earlier response", Clip([]byte(text)))
	}
	if messages.Order(raw[0]) != order {
		return 0, nil, Invalid("cursor", "%s comes from a response with another sort: use the same sort in every call",
			Clip([]byte(text)))
	}
	value := binary.BigEndian.Uint64(raw[1:])
	if value > math.MaxInt64 {
		return 0, nil, Invalid("cursor", "%s is not the value of next in an earlier response", Clip([]byte(text)))
	}
	return order, &messages.Position{Value: int64(value), Key: messages.Key{
		Message: capping.MessageOf(string(raw[cursorSize:])), Channel: capping.Channel(raw[cursorSize-1])}}, nil
}

// cursorSize is the size in bytes of a cursor in a list of messages, without the message id. A cursor in a list of
// messages begins with 1 byte for the order, 8 bytes for the sort value and 1 byte for the channel.
const cursorSize = 10

// MessageCursor returns the cursor that continues a list of messages after the given position.
func MessageCursor(order messages.Order, at *messages.Position) string {
	raw := binary.BigEndian.AppendUint64([]byte{byte(order)}, uint64(max(at.Value, 0)))
	raw = append(append(raw, byte(at.Channel)), at.Message.Text()...)
	return base64.RawURLEncoding.EncodeToString(raw)
}
