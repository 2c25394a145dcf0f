package client

import (
	"context"
	"fmt"

	"capper/client/api"
)

// AcceptLoss has the users decided again who are unavailable because a Redis server broke a promise. It needs a key
// of scope admin. The error has CodeConflict while a promise is broken still.
func (c *Client) AcceptLoss(ctx context.Context, reason string) (*api.Accepted, error) {
	var answer api.Accepted
	if err := c.call(ctx, "POST", "/v1/store/accept", &api.AcceptRequest{Reason: reason}, &answer); err != nil {
		return nil, fmt.Errorf("accept the loss of records by the store: %w", err)
	}
	return &answer, nil
}
