package client

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"strings"

	"capper/client/api"
)

// The method Permits makes one API call, which requests permits to start sends. The method Permits is for callers that
// space their sends themselves; a Pacer spaces the sends of its callers. The wait for a slot (start time) in the
// response counts from the moment when Permits returns. A permit may be used at its slot or later, but not earlier. The
// age of a permit counts from the call of Permits; callers must drop permits that are older than UsableFor. If a call
// of Permits took longer than half of UsableFor, the caller should repeat the request with its RequestID. The response
// to a repeated request for permits shows the slots that are still in the future. If the field Replayed of the response
// is true, permits with a wait of 0 may be old. The service may have granted old permits during the first call of
// Permits with this RequestID. After an error of Permits, the caller must not send.
//
// If a request has no RequestID, Permits gives it a random one, so that a retry takes no permits twice.
func (c *Client) Permits(ctx context.Context, r api.PermitsRequest) (*api.Permits, error) {
	if r.RequestID == "" && r.Permits > 0 {
		r.RequestID = rand.Text()
	}
	answer := new(api.Permits)
	if err := c.call(ctx, "POST", "/v1/permits", &r, answer); err != nil {
		return nil, fmt.Errorf("take permits of %s: %w", strings.Join(r.Pacers, ", "), err)
	}
	return answer, nil
}

// The method Pacers returns the state of every pacer (rate limiter for sends) of the service.
func (c *Client) Pacers(ctx context.Context) (*api.Pacers, error) {
	return read[api.Pacers](ctx, c, "/v1/pacers")
}

// The method Pacer returns the state of one pacer (rate limiter for sends) of the service. The method PacerLog returns
// the state for one message or key, for a pacer that counts each message or key separately.
func (c *Client) Pacer(ctx context.Context, name string) (*api.PacerState, error) {
	return read[api.PacerState](ctx, c, pacerPath(name))
}

// PacerLog returns the state of a pacer for one message or for one key. The pacer must count each message or key
// separately, and one of the arguments messageID and key must be "". PacerLog looks up the message in the namespace of
// the API key.
func (c *Client) PacerLog(ctx context.Context, name, messageID, key string) (*api.PacerState, error) {
	query := url.Values{}
	if messageID != "" {
		query.Set("message_id", messageID)
	}
	if key != "" {
		query.Set("key", key)
	}
	return read[api.PacerState](ctx, c, pacerPath(name)+"?"+query.Encode())
}

// ForgetPacer deletes the log of a pacer's granted permits. For a pacer that counts each message separately,
// ForgetPacer deletes the logs of all messages. After ForgetPacer, the service grants permits as if the pacer had
// granted no permit before. A second call of ForgetPacer has no further effect.
func (c *Client) ForgetPacer(ctx context.Context, name string) error {
	if err := c.call(ctx, "DELETE", pacerPath(name), nil, nil); err != nil {
		return fmt.Errorf("forget pacer %q: %w", name, err)
	}
	return nil
}

func pacerPath(name string) string { return "/v1/pacers/" + pathEscape(name) }
