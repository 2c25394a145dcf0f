package client

import (
	"context"
	"fmt"

	"capper/client/api"
)

// AcceptLoss accepts that a Redis server lost recorded sends or broke another guarantee, so that the service decides
// about the affected users again. AcceptLoss needs an API key with the scope admin. While a Redis server still breaks
// a guarantee, AcceptLoss returns an error with the code CodeConflict.
func (c *Client) AcceptLoss(ctx context.Context, reason string) (*api.Accepted, error) {
	var answer api.Accepted
	if err := c.call(ctx, "POST", "/v1/store/accept", &api.AcceptRequest{Reason: reason}, &answer); err != nil {
		return nil, fmt.Errorf("accept that the store lost data: %w", err)
	}
	return &answer, nil
}
