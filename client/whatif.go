package client

import (
	"context"
	"fmt"

	"capper/client/api"
)

// WhatIf replays the recorded calls of a period under changed limits, and returns how the decisions would have
// changed. The service refuses the call without an audit (CodeConflict), for more decisions than it replays in a call
// (CodeTooLarge), and while it computes another answer for the same key (CodeOverloaded).
func (c *Client) WhatIf(ctx context.Context, r *api.WhatIfRequest) (*api.WhatIf, error) {
	answer := new(api.WhatIf)
	if err := c.call(ctx, "POST", "/v1/whatif", r, answer); err != nil {
		return nil, fmt.Errorf("what-if: %w", err)
	}
	return answer, nil
}
