package client

import (
	"context"
	"fmt"

	"capper/client/api"
)

// Import records sends that were made elsewhere, at their own times, in one call. It decides nothing, and
// the same sends again are known: a call that failed is made again as it was. It needs a key of scope admin.
func (c *Client) Import(ctx context.Context, r *ImportRequest) (*ImportResult, error) {
	var answer api.ImportAnswer
	if err := c.call(ctx, "POST", "/v1/sends", r, &answer); err != nil {
		return nil, fmt.Errorf("import %d sends: %w", len(r.Sends), err)
	}
	return &answer, nil
}
