package client

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"capper/client/api"
)

// The method Explain returns the reasons why a user may or may not receive a message now.
func (c *Client) Explain(ctx context.Context, user uint32) (*api.Explanation, error) {
	return read[api.Explanation](ctx, c, userPath(user))
}

// The method Erase deletes the recorded sends of a user. The method Erase does not change the sets of the user: changes
// that API calls made, such as an opt-out, remain. An unknown user is no error.
func (c *Client) Erase(ctx context.Context, user uint32) error {
	if err := c.call(ctx, "DELETE", userPath(user), nil, nil); err != nil {
		return fmt.Errorf("erase user %d: %w", user, err)
	}
	return nil
}

// EraseWithSets deletes the recorded sends of a user, and all changes of sets that API calls made for the user. After
// EraseWithSets, only the builds determine whether the user is in a set. A person who opted out since the last build
// may therefore receive messages.
func (c *Client) EraseWithSets(ctx context.Context, user uint32) error {
	if err := c.call(ctx, "DELETE", userPath(user)+"?sets=true", nil, nil); err != nil {
		return fmt.Errorf("erase user %d with sets: %w", user, err)
	}
	return nil
}

// ExplainID works like Explain, in a deployment whose ids are uint64, uuid or text.
func (c *Client) ExplainID(ctx context.Context, id string) (*api.ExplanationOfID, error) {
	return read[api.ExplanationOfID](ctx, c, idPath(id))
}

// EraseID works like Erase, in a deployment whose ids are uint64, uuid or text.
func (c *Client) EraseID(ctx context.Context, id string) error {
	if err := c.call(ctx, "DELETE", idPath(id), nil, nil); err != nil {
		return fmt.Errorf("erase user %q: %w", id, err)
	}
	return nil
}

// EraseIDWithSets works like EraseWithSets, in a deployment whose ids are uint64, uuid or text.
func (c *Client) EraseIDWithSets(ctx context.Context, id string) error {
	if err := c.call(ctx, "DELETE", idPath(id)+"?sets=true", nil, nil); err != nil {
		return fmt.Errorf("erase user %q with sets: %w", id, err)
	}
	return nil
}

// idPath returns the URL path of a user.
func idPath(id string) string { return "/v1/users/" + pathEscape(id) }

// pathEscape escapes a name in a URL path. pathEscape also escapes the dots of the names "." and "..", which would
// otherwise be steps in the path.
func pathEscape(name string) string {
	if name == "." || name == ".." {
		return strings.ReplaceAll(name, ".", "%2E")
	}
	return url.PathEscape(name)
}

// IDs returns the kind of the deployment's user ids, and the hash key with which the service computes the image of an
// id (a 64-bit hash). An API key with any scope may call IDs.
func (c *Client) IDs(ctx context.Context) (*api.IDs, error) { return read[api.IDs](ctx, c, "/v1/ids") }

func userPath(user uint32) string { return "/v1/users/" + strconv.FormatUint(uint64(user), 10) }

// The method Decisions returns the decisions about a user that the audit has recorded since the given time.
func (c *Client) Decisions(ctx context.Context, user uint32, since time.Time) (*api.Decisions, error) {
	return read[api.Decisions](ctx, c, userPath(user)+"/decisions?since="+
		url.QueryEscape(since.UTC().Format(api.Milliseconds)))
}

// DecisionsOfID works like Decisions, in a deployment whose ids are uint64, uuid or text.
func (c *Client) DecisionsOfID(ctx context.Context, id string, since time.Time) (*api.DecisionsOfID, error) {
	return read[api.DecisionsOfID](ctx, c, idPath(id)+"/decisions?since="+
		url.QueryEscape(since.UTC().Format(api.Milliseconds)))
}

// DecidedUsers returns the users of a message on a channel by their latest result in the audit (record of decisions).
// The channel "" means sends without a channel. An empty argument "namespace" means the namespace of the API key; any
// other value needs an API key without a namespace.
func (c *Client) DecidedUsers(ctx context.Context, messageID, channel, namespace string) (*api.DecidedUsers, error) {
	return read[api.DecidedUsers](ctx, c, decidedPath(messageID, channel, namespace))
}

// DecidedIDs works like DecidedUsers, in a deployment whose ids are uint64, uuid or text.
func (c *Client) DecidedIDs(ctx context.Context, messageID, channel, namespace string) (*api.DecidedIDs, error) {
	return read[api.DecidedIDs](ctx, c, decidedPath(messageID, channel, namespace))
}

func decidedPath(messageID, channel, namespace string) string {
	parameters := url.Values{"message_id": {messageID}}
	for name, value := range map[string]string{"channel": channel, "namespace": namespace} {
		if value != "" {
			parameters.Set(name, value)
		}
	}
	return "/v1/decisions?" + parameters.Encode()
}

// The method Limits returns the policy that the service applies now: the limits of every segment.
func (c *Client) Limits(ctx context.Context) (*api.Policy, error) {
	return read[api.Policy](ctx, c, "/v1/limits")
}

// The method Status returns the state of the service.
func (c *Client) Status(ctx context.Context) (*api.Status, error) {
	return read[api.Status](ctx, c, "/v1/status")
}

// The method Alive makes one request to /healthz, without an API key. If the service must be restarted, Alive returns
// an error. If the error of Alive is an *Error with CodeUnavailable, it describes a problem that only a restart solves.
func (c *Client) Alive(ctx context.Context) error {
	return c.once(ctx, "GET", "/healthz", nil, nil)
}

func read[T any](ctx context.Context, c *Client, path string) (*T, error) {
	answer := new(T)
	if err := c.call(ctx, "GET", path, nil, answer); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return answer, nil
}
