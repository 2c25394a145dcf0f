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

// MessagesQuery says which messages are listed. The zero value: those of the last week.
type MessagesQuery struct {
	Since     time.Time // called since then; zero: within a week
	Channel   string    // "": all
	Namespace string    // for keys without one; "": all
	Max       int       // 0: 100
}

// Messages lists what became of messages, that of the latest call first.
func (c *Client) Messages(ctx context.Context, q MessagesQuery) (*api.Messages, error) {
	parameters := url.Values{}
	if !q.Since.IsZero() {
		parameters.Set("since", q.Since.UTC().Format(time.RFC3339Nano))
	}
	if q.Max > 0 {
		parameters.Set("max", strconv.Itoa(q.Max))
	}
	if q.Channel != "" {
		parameters.Set("channel", q.Channel)
	}
	return read[api.Messages](ctx, c, inNamespace("/v1/messages", parameters, q.Namespace))
}

// Message tells what became of a message on each channel. namespace is for keys
// without one; "": the key's own. Of an unknown message it is an *Error of CodeNotFound.
func (c *Client) Message(ctx context.Context, id, namespace string) (*api.MessageChannels, error) {
	return read[api.MessageChannels](ctx, c, inNamespace(messagePath(id), url.Values{}, namespace))
}

// messagePath is the path of a message. Elements of dots would be taken for steps in it.
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

// MessageRelease says which message's sends are given back.
type MessageRelease struct {
	MessageID string
	Channel   string // "": every channel, and sends without one
	Namespace string // for keys without one; "": the key's own
}

// ReleaseMessage gives back all sends of a message, of whomever they are: the service reads
// that from its audit, and without one refuses (CodeConflict). It calls until nothing is
// left, or until calls give nothing back any more: then Missing or Unavailable of the result
// are above 0, and later the same call may give back more. each is told of every answer; nil: nobody is.
func (c *Client) ReleaseMessage(
	ctx context.Context, r *MessageRelease, each func(*api.ReleasedMessage),
) (*api.ReleasedMessage, error) {
	if r.MessageID == "" {
		return nil, errors.New("release: the message id must not be empty")
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

// addReleased is what calls have released together; what is left is what the last one said.
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
