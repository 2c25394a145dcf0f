package client

import (
	"context"
	"fmt"

	"capper/client/api"
)

// AcceptLoss makes users available again who are unavailable because a Redis server lost data or broke another
// guarantee. AcceptLoss needs an API key with the scope admin. The error has CodeConflict while a Redis server still
// breaks a guarantee.
func (c *Client) AcceptLoss(ctx context.Context, reason string) (*api.Accepted, error) {
	var answer api.Accepted
	if err := c.call(ctx, "POST", "/v1/store/accept", &api.AcceptRequest{Reason: reason}, &answer); err != nil {
		return nil, fmt.Errorf("accept that the store lost data: %w", err)
	}
	return &answer, nil
}
