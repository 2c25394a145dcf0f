package messages

import (
	"context"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"capper/client/api"
	"capper/internal/campaign"
	"capper/internal/capping"
	"capper/internal/server/answer"
	"capper/internal/server/decode"
	"capper/internal/server/failure"
)

// Counts is what was counted of messages; see campaign.Counter.
type Counts interface {
	Campaigns(ctx context.Context, since capping.Instant, most int, match func(campaign.Key) bool) (
		found []campaign.Campaign, more bool, err error)
	Campaign(ctx context.Context, message capping.Message) ([]campaign.Campaign, error)
}

// Messages answers. It is safe for concurrent use.
type Messages struct {
	Counts Counts // nil: none are kept
	Capper *capping.Capper
	Clock  func() time.Time
	Audit  Audit // nil: there is none
}

// Caller is who asks, and with which parameters of the query.
type Caller struct {
	Namespace  string // of the key; "": none
	Parameters map[string]string
}

// ListParameters are those of List, and NameParameters those of One.
var (
	ListParameters = []string{"since", "channel", "max", "namespace"}
	NameParameters = []string{"namespace"}
)

// How many messages a list has, and of which time, when nothing else is asked for.
const (
	usualMax   = 100
	mostMax    = 1000
	usualSince = 7 * 24 * time.Hour
)

// List is the messages that were called for lately.
func (m *Messages) List(ctx context.Context, c Caller) (*api.Messages, error) {
	since, err := Since(c.Parameters["since"], m.Clock())
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
	found, more, err := m.Counts.Campaigns(ctx, since, most, match)
	if err != nil {
		return nil, failure.OfStore(ctx, err)
	}
	return &api.Messages{Messages: m.told(found), More: more}, nil
}

// orNotCounted is the error, or else that nothing is counted.
func orNotCounted(err error) error {
	if err != nil {
		return err
	}
	return failure.New(api.CodeConflict, "this store does not count messages")
}

// One is the message of an id, on each channel.
func (m *Messages) One(ctx context.Context, c Caller, id string) (*api.MessageChannels, error) {
	message, err := c.Message(id)
	if err != nil || m.Counts == nil {
		return nil, orNotCounted(err)
	}
	found, err := m.Counts.Campaign(ctx, message)
	if err != nil {
		return nil, failure.OfStore(ctx, err)
	}
	if len(found) == 0 {
		return nil, noSuchMessage(message)
	}
	return &api.MessageChannels{MessageID: message.ID, Namespace: message.Namespace, Channels: m.told(found)}, nil
}

func noSuchMessage(message capping.Message) error {
	return failure.New(api.CodeNotFound, "message %q has no counts", failure.Clip([]byte(message.ID)))
}

func (m *Messages) told(found []campaign.Campaign) []api.Message {
	policy, list := m.Capper.Policy(), make([]api.Message, 0, len(found))
	for i := range found {
		list = append(list, answer.Message(&found[i], policy))
	}
	return list
}

// match is which messages the caller may see and asks for.
func (m *Messages) match(c Caller) (func(campaign.Key) bool, error) {
	channel, err := decode.ChannelOf(c.Parameters["channel"], m.Capper.Policy())
	if err != nil {
		return nil, err
	}
	namespace, err := c.namespace()
	if err != nil {
		return nil, err
	}
	return func(key campaign.Key) bool {
		return (channel == 0 || key.Channel == channel) && (namespace == "" || key.Message.Namespace == namespace)
	}, nil
}

// namespace is the one that the caller asks for; "": none or, of a list, any.
func (c Caller) namespace() (string, error) {
	asked, given := c.Parameters["namespace"]
	switch {
	case !given:
		return c.Namespace, nil
	case c.Namespace != "" && asked != c.Namespace:
		return "", failure.OfField(api.CodeForbidden, "namespace", "messages of the namespace %q do not belong to "+
			"this API key, whose namespace is %q", failure.Clip([]byte(asked)), c.Namespace)
	case !utf8.ValidString(asked) || len(asked) > capping.MaxName:
		return "", failure.Invalid("namespace", "%q is none", failure.Clip([]byte(asked)))
	}
	return asked, nil
}

// ForImport is the namespace into which the caller imports sends, which must be the name of one.
func (c Caller) ForImport() (string, error) {
	namespace, err := c.namespace()
	if err == nil && namespace != "" && !capping.IsName(namespace) {
		return "", failure.Invalid("namespace", capping.NameRule, failure.Clip([]byte(namespace)))
	}
	return namespace, err
}

// Message is the message that the caller means by an id.
func (c Caller) Message(id string) (capping.Message, error) {
	if len(id) == 0 || len(id) > capping.MaxMessageID {
		return capping.Message{}, failure.Invalid("message_id", "has %d bytes and must have 1 to %d", len(id),
			capping.MaxMessageID)
	}
	if !utf8.ValidString(id) { // which could be another namespace's, as stores write messages
		return capping.Message{}, failure.Invalid("message_id", "%q must be valid UTF-8", failure.Clip([]byte(id)))
	}
	namespace, err := c.namespace()
	return capping.Message{Namespace: namespace, ID: id}, err
}

// Since is the instant that a parameter names: a time, or how long ago it is; of "" a
// week ago.
func Since(text string, now time.Time) (capping.Instant, error) {
	if text == "" {
		return atLeastZero(now.Add(-usualSince)), nil
	}
	if at, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return atLeastZero(at), nil
	}
	ago, err := parseSpan(text)
	if err != nil || ago < 0 {
		return 0, failure.Invalid("since", "%q must be a time (RFC 3339) or an age such as 36h or 7d",
			failure.Clip([]byte(text)))
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
		return 0, failure.Invalid("max", "%s is not a number from 1 to %d", failure.Clip([]byte(text)), mostMax)
	}
	return int(most), nil
}
