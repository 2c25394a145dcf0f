package client

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"strings"

	"capper/client/api"
)

// Permits asks for permits of pacers in one call, for those who keep the pace
// themselves; Pacer does it for you. Slots count from the return: a permit may be used
// at its slot or later, never earlier. Those with a wait of 0 in an answer that is
// Replayed may be as old as the first attempt. An error means that there was no answer, so
// nothing may be sent.
//
// A call that is repeated must not take twice: a request without a RequestID gets a
// random one.
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

// Pacers reads the state of every pacer.
func (c *Client) Pacers(ctx context.Context) (*api.Pacers, error) {
	return read[api.Pacers](ctx, c, "/v1/pacers")
}

// Pacer reads the state of one pacer. Of one per message Permits tells it, with
// Permits 0 and the MessageID.
func (c *Client) Pacer(ctx context.Context, name string) (*api.PacerState, error) {
	return read[api.PacerState](ctx, c, pacerPath(name))
}

// ForgetPacer forgets what a pacer has given out, of a pacer per message for all
// messages: what follows is placed as if nothing had been. Twice is once.
func (c *Client) ForgetPacer(ctx context.Context, name string) error {
	if err := c.call(ctx, "DELETE", pacerPath(name), nil, nil); err != nil {
		return fmt.Errorf("forget pacer %q: %w", name, err)
	}
	return nil
}

func pacerPath(name string) string { return "/v1/pacers/" + url.PathEscape(name) }
