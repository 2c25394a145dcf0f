package server

import (
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"capper/client/api"
	"capper/internal/capping"
	"capper/internal/messages"
	"capper/internal/server/wire"
)

// The interface counts is the part of messages.Counter that package server needs: it reads and changes the stored
// decision counts and titles of messages.
type counts interface {
	ListMessages(ctx context.Context, q messages.Query) (messages.Page, error)
	MessageCounts(ctx context.Context, message capping.Message) ([]messages.Counts, error)
	SetTitle(ctx context.Context, message capping.Message, title string) error
	Titles(ctx context.Context, of []capping.Message) (map[capping.Message]string, error)
}

// A Messages handles the API calls about messages, and is safe for concurrent use.
type Messages struct {
	Counts counts // nil: the service counts no messages
	Capper *capping.Capper
	Clock  func() time.Time
	Audit  Audit // nil: no audit is configured
	Past   *auditReader
}

// The struct caller holds the namespace of the client and the query parameters of an API call, for methods such as
// List.
type caller struct {
	Namespace  string // namespace of the API key; "": the key has no namespace
	Parameters map[string]string
}

// These variables list the accepted query parameters: listParameters for GET /v1/messages, oneParameters for GET
// /v1/messages/{id}, and nameParameters for all other calls about a message.
var (
	listParameters = []string{"since", "until", "id", "channel", "min_asked", "sort", "max", "cursor", "namespace"}
	oneParameters  = []string{"users", "namespace"}
	nameParameters = []string{"namespace"}
)

// These constants are the default and the maximum number of messages in a response to GET /v1/messages, and the default
// period of such a list.
const (
	usualMax   = 100
	mostMax    = 1000
	usualSince = 7 * 24 * time.Hour
)

// List returns a page of the messages for which API calls arrived in the requested period.
func (m *Messages) List(ctx context.Context, c caller) (*api.Messages, error) {
	q, err := m.query(c)
	if err != nil || m.Counts == nil {
		return nil, orNotCounted(err)
	}
	page, err := m.Counts.ListMessages(ctx, q)
	if err != nil {
		return nil, wire.StoreFailure(ctx, err)
	}
	list := &api.Messages{Messages: m.channels(page.Found), More: page.Next != nil}
	if page.Next != nil {
		next := wire.MessageCursor(q.Order, page.Next)
		list.Next = &next
	}
	return list, nil
}

// The method query decodes the query parameters of GET /v1/messages.
func (m *Messages) query(c caller) (q messages.Query, err error) {
	now := m.Clock()
	if q.Since, err = since(c.Parameters["since"], now); err != nil {
		return q, err
	}
	if text, given := c.Parameters["until"]; given {
		if q.Until, err = instantOf("until", text, now); err != nil {
			return q, err
		}
		if q.Since > q.Until {
			return q, wire.Invalid("since", "%s is after until, which is %s", q.Since.Time().Format(time.RFC3339),
				q.Until.Time().Format(time.RFC3339))
		}
	}
	if q.AtLeast, err = leastOf(c.Parameters); err != nil {
		return q, err
	}
	if q.Order, q.After, err = wire.MessageOrder(c.Parameters); err != nil {
		return q, err
	}
	if q.Max, err = maxOf(c.Parameters); err != nil {
		return q, err
	}
	q.Part = c.Parameters["id"]
	if utf8.RuneCountInString(q.Part) > messages.MaxTitle || !utf8.ValidString(q.Part) {
		return q, wire.Invalid("id", "%q cannot be part of a message id or title: "+
			"must be at most %d characters of valid UTF-8",
			wire.Clip([]byte(q.Part)), messages.MaxTitle)
	}
	q.Match, err = m.match(c)
	return q, err
}

// orNotCounted returns err. If err is nil, orNotCounted returns the error that this service does not count the
// decisions about messages.
func orNotCounted(err error) error {
	if err != nil {
		return err
	}
	return wire.NewFailure(api.CodeConflict, "this store does not count messages")
}

// The method One returns the decision counts of the message with the given id, separately for each channel. If the
// caller asks for users, or if the store has no counts of the message, the method One also reads the audit (record of
// all decisions).
func (m *Messages) One(ctx context.Context, c caller, id string) (*api.MessageChannels, error) {
	message, err := c.Message(id)
	if err != nil || m.Counts == nil {
		return nil, orNotCounted(err)
	}
	users, err := wire.Flag(c.Parameters, "users")
	if err != nil {
		return nil, err
	}
	found, err := m.Counts.MessageCounts(ctx, message)
	if err != nil {
		return nil, wire.StoreFailure(ctx, err)
	}
	answer := &api.MessageChannels{MessageID: message.ID, Namespace: message.Namespace, Channels: m.channels(found)}
	if answer.Title, err = m.titleOf(ctx, message, found); err != nil {
		return nil, wire.StoreFailure(ctx, err)
	}
	if m.Past.Records != nil && (users || len(found) == 0) {
		if err := m.addRecorded(ctx, message, found, answer); err != nil {
			return nil, err
		}
	}
	if len(answer.Channels) == 0 && answer.Title == "" {
		return nil, noSuchMessage(message)
	}
	return answer, nil
}

// titleOf returns the title of a message, either from the message's counts in "found" or, if there are no counts, from
// the store.
func (m *Messages) titleOf(ctx context.Context, message capping.Message, found []messages.Counts) (string, error) {
	if len(found) > 0 {
		return found[0].Title, nil
	}
	titles, err := m.Counts.Titles(ctx, []capping.Message{message})
	return titles[message], err
}

// SetTitle replaces the title of a message; if the new title is "", SetTitle removes the stored title.
func (m *Messages) SetTitle(ctx context.Context, c caller, id, title string) (*api.MessageTitle, error) {
	message, err := c.Message(id)
	if err == nil && m.Counts == nil {
		err = orNotCounted(nil)
	}
	if err == nil {
		message.Namespace, err = c.ForImport()
	}
	if err != nil {
		return nil, err
	}
	err = m.Counts.SetTitle(ctx, message, title)
	if errors.Is(err, messages.ErrNotRemembered) {
		f := wire.NewFailure(api.CodeRateLimited, "%s: set the title again after a call has named the message, "+
			"or try again later", err)
		f.RetryAfter = time.Second
		return nil, f
	}
	if err != nil {
		return nil, wire.StoreFailure(ctx, err)
	}
	return &api.MessageTitle{MessageID: message.ID, Namespace: message.Namespace, Title: title}, nil
}

// addRecorded adds to the response the number of users for each channel and outcome, according to the audit (record of
// all decisions). The method addRecorded also adds the channels that only the audit contains.
func (m *Messages) addRecorded(
	ctx context.Context, message capping.Message, counted []messages.Counts, answer *api.MessageChannels,
) error {
	if m.Audit != nil {
		if err := m.Audit.Flush(ctx); err != nil {
			return wire.AuditFailure(ctx, err)
		}
	}
	recorded, faults, err := m.Past.Recorded(ctx, message)
	if err != nil {
		return err
	}
	answer.Faults = faults
	segments := m.Capper.Segments()
	for i := range counted {
		if one := recorded[counted[i].Channel]; one != nil {
			answer.Channels[i].Users = one.users(segments)
			delete(recorded, counted[i].Channel)
		}
	}
	for _, channel := range slices.Sorted(maps.Keys(recorded)) {
		one := recorded[channel]
		users := one.users(segments)
		one.Released = max(one.Released, users.Released) // releases on all channels are only in the numbers of users
		told := wire.Message(&one.Counts, m.Capper.Policy())
		told.Users, told.FromAudit, told.Title = users, true, answer.Title
		answer.Channels = append(answer.Channels, told)
	}
	return nil
}

func noSuchMessage(message capping.Message) error {
	return wire.NewFailure(api.CodeNotFound, "message %q has no counts and no record in the audit",
		wire.Clip([]byte(message.ID)))
}

func (m *Messages) channels(found []messages.Counts) []api.Message {
	policy, list := m.Capper.Policy(), make([]api.Message, 0, len(found))
	for i := range found {
		list = append(list, wire.Message(&found[i], policy))
	}
	return list
}

// The method match returns a function that selects the messages that the caller may see and has requested.
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

// The method namespace returns the namespace that the caller of the API requests. If a call requests a list of
// messages, the result "" of namespace() means all namespaces. In a call that requests no list of messages, the result
// "" of namespace() means the messages without a namespace.
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

// ForImport returns the namespace to which the imported sends of the caller belong. ForImport accepts "" and valid
// names.
func (c caller) ForImport() (string, error) {
	namespace, err := c.namespace()
	if err == nil && namespace != "" && !capping.IsName(namespace) {
		return "", wire.Invalid("namespace", capping.NameRule, wire.Clip([]byte(namespace)))
	}
	return namespace, err
}

// Message returns the message with the given id in the namespace of the caller.
func (c caller) Message(id string) (capping.Message, error) {
	if id == "" {
		return capping.Message{}, wire.Invalid("message_id", "is required (1 to %d bytes)", capping.MaxMessageID)
	}
	if len(id) > capping.MaxMessageID {
		return capping.Message{}, wire.Invalid("message_id", "has %d bytes and must have 1 to %d", len(id),
			capping.MaxMessageID)
	}
	if !utf8.ValidString(id) { // in the format of stored messages, this id could belong to another namespace
		return capping.Message{}, wire.Invalid("message_id", "%q must be valid UTF-8", wire.Clip([]byte(id)))
	}
	namespace, err := c.namespace()
	return capping.Message{Namespace: namespace, ID: id}, err
}

// The function "since" parses the value of the query parameter "since": a time, a date or an age such as 24h. If the
// parameter "since" is absent, since() returns the time one week ago.
func since(text string, now time.Time) (capping.Instant, error) {
	if text == "" {
		return atLeastZero(now.Add(-usualSince)), nil
	}
	return instantOf("since", text, now)
}

// instantOf parses the value of a query parameter that is a time, a date or an age such as 36h.
func instantOf(field, text string, now time.Time) (capping.Instant, error) {
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil {
			return atLeastZero(at), nil
		}
	}
	ago, err := parseSpan(text)
	if err != nil || ago < 0 {
		return 0, wire.Invalid(field, "%q must be a time (RFC 3339), a date or an age up to %dd such as 36h or 7d",
			wire.Clip([]byte(text)), math.MaxUint16)
	}
	return atLeastZero(now.Add(-ago)), nil
}

// pastSince parses the same texts as the function "since", but returns an error if the time is in the future.
func pastSince(text string, now time.Time) (capping.Instant, error) {
	at, err := since(text, now)
	if err == nil && at.Time().After(now.Add(wire.Slack)) {
		return 0, wire.Invalid("since", "%s is in the future: the time is now %s", wire.Clip([]byte(text)),
			now.UTC().Format(api.Milliseconds))
	}
	return at, err
}

func atLeastZero(at time.Time) capping.Instant { return max(capping.InstantOf(at), 0) }

// parseSpan parses a duration such as 36h, and also accepts days, such as 7d.
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

// leastOf parses the query parameter "min_asked". With the parameter "min_asked", a list contains only messages with at
// least this number of requested users.
func leastOf(parameters map[string]string) (int64, error) {
	text, given := parameters["min_asked"]
	if !given {
		return 0, nil
	}
	least, err := strconv.ParseUint(text, 10, 53)
	if err != nil {
		return 0, wire.Invalid("min_asked", "%s is not a number of users", wire.Clip([]byte(text)))
	}
	return int64(least), nil
}
