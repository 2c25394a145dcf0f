package server

import (
	"context"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"capper/client/api"
	"capper/internal/capping"
	"capper/internal/messages"
	"capper/internal/server/wire"
)

// counts is what was counted of messages; see messages.Counter.
type counts interface {
	ListMessages(ctx context.Context, since capping.Instant, most int, match func(messages.Key) bool) (
		found []messages.Counts, more bool, err error)
	MessageCounts(ctx context.Context, message capping.Message) ([]messages.Counts, error)
}

// Messages answers. It is safe for concurrent use.
type Messages struct {
	Counts counts // nil: none are kept
	Capper *capping.Capper
	Clock  func() time.Time
	Audit  Audit // nil: there is none
}

// caller is who asks, and with which parameters of the query.
type caller struct {
	Namespace  string // of the key; "": none
	Parameters map[string]string
}

// listParameters are those of List, and NameParameters those of One.
var (
	listParameters = []string{"since", "channel", "max", "namespace"}
	nameParameters = []string{"namespace"}
)

// How many messages a list has, and of which time, when nothing else is asked for.
const (
	usualMax   = 100
	mostMax    = 1000
	usualSince = 7 * 24 * time.Hour
)

// List is the messages that were called for lately.
func (m *Messages) List(ctx context.Context, c caller) (*api.Messages, error) {
	since, err := since(c.Parameters["since"], m.Clock())
	if err != nil {
		return nil, err
	}
	most, err := maxOf(c.Parameters)
	if err != nil {
		return nil, err
	}
	match, err := m.match(c)
	if err != nil || m.Counts == nil {
		return nil, orNotCounted(err)
	}
	found, more, err := m.Counts.ListMessages(ctx, since, most, match)
	if err != nil {
		return nil, wire.StoreFailure(ctx, err)
	}
	return &api.Messages{Messages: m.told(found), More: more}, nil
}

// orNotCounted is the error, or else that nothing is counted.
func orNotCounted(err error) error {
	if err != nil {
		return err
	}
	return wire.NewFailure(api.CodeConflict, "this store does not count messages")
}

// One is the message of an id, on each channel.
func (m *Messages) One(ctx context.Context, c caller, id string) (*api.MessageChannels, error) {
	message, err := c.Message(id)
	if err != nil || m.Counts == nil {
		return nil, orNotCounted(err)
	}
	found, err := m.Counts.MessageCounts(ctx, message)
	if err != nil {
		return nil, wire.StoreFailure(ctx, err)
	}
	if len(found) == 0 {
		return nil, noSuchMessage(message)
	}
	return &api.MessageChannels{MessageID: message.ID, Namespace: message.Namespace, Channels: m.told(found)}, nil
}

func noSuchMessage(message capping.Message) error {
	return wire.NewFailure(api.CodeNotFound, "message %q has no counts", wire.Clip([]byte(message.ID)))
}

func (m *Messages) told(found []messages.Counts) []api.Message {
	policy, list := m.Capper.Policy(), make([]api.Message, 0, len(found))
	for i := range found {
		list = append(list, wire.Message(&found[i], policy))
	}
	return list
}

// match is which messages the caller may see and asks for.
func (m *Messages) match(c caller) (func(messages.Key) bool, error) {
	channel, err := wire.ChannelOf(c.Parameters["channel"], m.Capper.Policy())
	if err != nil {
		return nil, err
	}
	namespace, err := c.namespace()
	if err != nil {
		return nil, err
	}
	return func(key messages.Key) bool {
		return (channel == 0 || key.Channel == channel) && (namespace == "" || key.Message.Namespace == namespace)
	}, nil
}

// namespace is the one that the caller asks for; "": none or, of a list, any.
func (c caller) namespace() (string, error) {
	asked, given := c.Parameters["namespace"]
	switch {
	case !given:
		return c.Namespace, nil
	case c.Namespace != "" && asked != c.Namespace:
		return "", wire.FieldFailure(api.CodeForbidden, "namespace", "messages of the namespace %q do not belong to "+
			"this API key, whose namespace is %q", wire.Clip([]byte(asked)), c.Namespace)
	case !utf8.ValidString(asked) || len(asked) > capping.MaxName:
		return "", wire.Invalid("namespace", "%q is none", wire.Clip([]byte(asked)))
	}
	return asked, nil
}

// ForImport is the namespace into which the caller imports sends, which must be the name of one.
func (c caller) ForImport() (string, error) {
	namespace, err := c.namespace()
	if err == nil && namespace != "" && !capping.IsName(namespace) {
		return "", wire.Invalid("namespace", capping.NameRule, wire.Clip([]byte(namespace)))
	}
	return namespace, err
}

// Message is the message that the caller means by an id.
func (c caller) Message(id string) (capping.Message, error) {
	if len(id) == 0 || len(id) > capping.MaxMessageID {
		return capping.Message{}, wire.Invalid("message_id", "has %d bytes and must have 1 to %d", len(id),
			capping.MaxMessageID)
	}
	if !utf8.ValidString(id) { // which could be another namespace's, as stores write messages
		return capping.Message{}, wire.Invalid("message_id", "%q must be valid UTF-8", wire.Clip([]byte(id)))
	}
	namespace, err := c.namespace()
	return capping.Message{Namespace: namespace, ID: id}, err
}

// since is the instant that a parameter names: a time, or how long ago it is; of "" a
// week ago.
func since(text string, now time.Time) (capping.Instant, error) {
	if text == "" {
		return atLeastZero(now.Add(-usualSince)), nil
	}
	if at, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return atLeastZero(at), nil
	}
	ago, err := parseSpan(text)
	if err != nil || ago < 0 {
		return 0, wire.Invalid("since", "%q must be a time (RFC 3339) or an age such as 36h or 7d",
			wire.Clip([]byte(text)))
	}
	return atLeastZero(now.Add(-ago)), nil
}

func atLeastZero(at time.Time) capping.Instant { return max(capping.InstantOf(at), 0) }

// parseSpan reads a duration, which may be of days: 7d.
func parseSpan(text string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		return time.Duration(n) * 24 * time.Hour, err
	}
	return time.ParseDuration(text)
}

func maxOf(parameters map[string]string) (int, error) {
	text, given := parameters["max"]
	if !given {
		return usualMax, nil
	}
	most, err := strconv.ParseUint(text, 10, 16)
	if err != nil || most < 1 || most > mostMax {
		return 0, wire.Invalid("max", "%s is not a number from 1 to %d", wire.Clip([]byte(text)), mostMax)
	}
	return int(most), nil
}
