package client

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"strings"

	"capper/client/api"
)

// Permits requests permits of pacers in one call, for callers who keep the pace themselves; a Pacer does so for its
// callers. Slots count from the return of Permits, and a permit may be used at its slot or later, never earlier. The
// age of a permit counts from the call of Permits: drop permits that are older than their UsableFor. A call that took
// longer than half of that is best repeated with its RequestID, which says what slots are still ahead. In an answer
// that is Replayed, permits with a wait of 0 may be as old as the first call. After an error nothing may be sent,
// because there was no answer.
//
// A repeated call must not take permits twice, so a request without a RequestID gets a random one.
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

// Pacers returns the state of every pacer.
func (c *Client) Pacers(ctx context.Context) (*api.Pacers, error) {
	return read[api.Pacers](ctx, c, "/v1/pacers")
}

// Pacer returns the state of one pacer. For a pacer per message, call Permits with Permits 0 and the MessageID
// instead.
func (c *Client) Pacer(ctx context.Context, name string) (*api.PacerState, error) {
	return read[api.PacerState](ctx, c, pacerPath(name))
}

// ForgetPacer deletes the log of granted permits of a pacer, for all messages of a pacer per message. Later permits
// are granted as if no permit had been granted before. Calling ForgetPacer twice has the same effect as once.
func (c *Client) ForgetPacer(ctx context.Context, name string) error {
	if err := c.call(ctx, "DELETE", pacerPath(name), nil, nil); err != nil {
		return fmt.Errorf("forget pacer %q: %w", name, err)
	}
	return nil
}

func pacerPath(name string) string { return "/v1/pacers/" + url.PathEscape(name) }
