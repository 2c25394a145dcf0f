package client

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"capper/client/api"
)

// MessagesQuery selects which messages (campaigns) the method Messages lists. The zero MessagesQuery selects the
// messages with calls in the last week.
type MessagesQuery struct {
	Since     time.Time // only messages whose last call was at this time or later; zero: a week ago
	Until     time.Time // only messages whose last call was before this time; zero: now
	ID        string    // only messages whose id or title contains this, in letters of any case; "": all
	Channel   string    // "": all
	Namespace string    // only for keys without a namespace; "": all
	MinAsked  int64     // only messages whose calls had this number of users or more, with repetitions; 0: all
	Sort      string    // SortLastCall, SortAsked, or "": SortLastCall
	Max       int       // 0: 100
	Cursor    string    // the Next of the previous page; "": the first page
}

// SortLastCall and SortAsked are the orders of a list of messages. SortLastCall begins with the message with the latest
// call, and SortAsked with the message with the most users in calls.
const (
	SortLastCall = "last_call"
	SortAsked    = "asked"
)

// The method Activity returns the numbers of decisions by all service instances, by hour, from the hour that contains
// "since" up to the time "until". A zero "since" means 24 hours ago, and a zero "until" means now.
func (c *Client) Activity(ctx context.Context, since, until time.Time) (*api.Activity, error) {
	parameters := url.Values{}
	for name, at := range map[string]time.Time{"since": since, "until": until} {
		if !at.IsZero() {
			parameters.Set(name, at.UTC().Format(time.RFC3339Nano))
		}
	}
	return read[api.Activity](ctx, c, inNamespace("/v1/activity", parameters, ""))
}

// The method Messages returns one page of the list of messages, with the counts of each message. For each page, the
// service reads a limited number of messages. A page may therefore contain few or no messages, even if another page
// follows (field Next).
func (c *Client) Messages(ctx context.Context, q MessagesQuery) (*api.Messages, error) {
	return read[api.Messages](ctx, c, q.Path())
}

// The method Path returns the URL path and the query parameters of the API call that lists messages.
func (q *MessagesQuery) Path() string {
	parameters := url.Values{}
	set := func(name, value string, given bool) {
		if given {
			parameters.Set(name, value)
		}
	}
	set("since", q.Since.UTC().Format(time.RFC3339Nano), !q.Since.IsZero())
	set("until", q.Until.UTC().Format(time.RFC3339Nano), !q.Until.IsZero())
	set("max", strconv.Itoa(q.Max), q.Max > 0)
	set("min_asked", strconv.FormatInt(q.MinAsked, 10), q.MinAsked > 0)
	set("id", q.ID, q.ID != "")
	set("channel", q.Channel, q.Channel != "")
	set("sort", q.Sort, q.Sort != "" && q.Sort != SortLastCall)
	set("cursor", q.Cursor, q.Cursor != "")
	return inNamespace("/v1/messages", parameters, q.Namespace)
}

// The method Message returns the counts of one message on each channel. An empty argument "namespace" means the
// namespace of the API key; any other value needs an API key without a namespace. If the service does not know the
// message, the error is an *Error with CodeNotFound.
func (c *Client) Message(ctx context.Context, id, namespace string) (*api.MessageChannels, error) {
	return read[api.MessageChannels](ctx, c, inNamespace(messagePath(id), url.Values{}, namespace))
}

// MessageUsers works like the method Message, and also counts the distinct users if the service has an audit (record of
// decisions); see api.Message.Users.
func (c *Client) MessageUsers(ctx context.Context, id, namespace string) (*api.MessageChannels, error) {
	return read[api.MessageChannels](ctx, c, inNamespace(messagePath(id), url.Values{"users": {"true"}}, namespace))
}

// SetTitle sets the title of a message, before or after the first call about the message. People see the title instead
// of the message id. An empty title removes the title. An empty argument "namespace" means the namespace of the API
// key. A repeated SetTitle has no further effect.
func (c *Client) SetTitle(ctx context.Context, id, namespace, title string) (*api.MessageTitle, error) {
	if id == "" {
		return nil, errors.New("set the title of a message: the message id must not be empty")
	}
	answer := new(api.MessageTitle)
	path := inNamespace(messagePath(id), url.Values{}, namespace)
	if err := c.call(ctx, "PUT", path, &api.TitleRequest{Title: title}, answer); err != nil {
		return nil, fmt.Errorf("set the title of message %q: %w", id, err)
	}
	return answer, nil
}

// messagePath returns the URL path of a message. messagePath escapes ids that consist of dots, which would otherwise be
// steps in the path.
func messagePath(id string) string {
	element := url.PathEscape(id)
	if strings.Trim(element, ".") == "" {
		element = strings.ReplaceAll(element, ".", "%2E")
	}
	return "/v1/messages/" + element
}

func inNamespace(path string, parameters url.Values, namespace string) string {
	if namespace != "" {
		parameters.Set("namespace", namespace)
	}
	if len(parameters) == 0 {
		return path
	}
	return path + "?" + parameters.Encode()
}

// MessageRelease selects the message whose recorded sends ReleaseMessage releases.
type MessageRelease struct {
	MessageID string
	Channel   string // "": every channel, and sends without one
	Namespace string // only for keys without a namespace; "": the key's own
}

// ReleaseMessage releases all sends of a message. To release all sends of a message, the service finds the users in
// its audit (its log of decisions). The service rejects ReleaseMessage with CodeConflict if the service has no audit.
// ReleaseMessage repeats the call until all sends are released, or until Config.Attempts calls in a row release
// nothing. If recorded sends remain, Missing or Unavailable of the result is above 0, and a later call of
// ReleaseMessage may release more. ReleaseMessage calls the function "each", unless it is nil, with every response.
func (c *Client) ReleaseMessage(
	ctx context.Context, r *MessageRelease, each func(*api.ReleasedMessage),
) (*api.ReleasedMessage, error) {
	if r.MessageID == "" {
		return nil, errors.New("release (cancel) the sends of a message: the message id must not be empty")
	}
	var total *api.ReleasedMessage
	for fruitless := 0; ; {
		answer := new(api.ReleasedMessage)
		path := inNamespace(messagePath(r.MessageID)+"/release", url.Values{}, r.Namespace)
		if err := c.call(ctx, "POST", path, &api.ReleaseMessageRequest{Channel: r.Channel}, answer); err != nil {
			return total, fmt.Errorf("release message %q: %w", r.MessageID, err)
		}
		if each != nil {
			each(answer)
		}
		total = addReleased(total, answer)
		if answer.Released > 0 {
			fruitless = 0
		} else if fruitless++; fruitless >= c.cfg.Attempts {
			return total, nil
		}
		if answer.Missing == 0 && answer.Unavailable == 0 {
			return total, nil
		}
		if fruitless == 0 {
			continue
		}
		if err := c.wait(ctx, fruitless, nil); err != nil {
			return total, err
		}
	}
}

// addReleased returns the sum of the released sends in two responses. The fields Unavailable, Missing and AtLeast of
// the sum come from the later response.
func addReleased(total, answer *api.ReleasedMessage) *api.ReleasedMessage {
	if total == nil {
		sum := *answer
		return &sum
	}
	total.Found = max(total.Found, answer.Found)
	total.Released += answer.Released
	total.Absent += answer.Absent
	total.Unavailable, total.Missing, total.AtLeast = answer.Unavailable, answer.Missing, answer.AtLeast
	return total
}
