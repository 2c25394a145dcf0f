package client

import (
	"context"
	"fmt"

	"capper/client/api"
)

// WhatIf asks for the decisions that the service would have made in a past period under changed limits. To find the
// decisions under changed limits, the service decides its recorded calls again. The service rejects a what-if call with
// CodeConflict if it has no audit (record of decisions), and with CodeTooLarge if the period has too many decisions.
// The service rejects a what-if call with CodeOverloaded while another what-if call of the same API key runs.
func (c *Client) WhatIf(ctx context.Context, r *api.WhatIfRequest) (*api.WhatIf, error) {
	answer := new(api.WhatIf)
	if err := c.call(ctx, "POST", "/v1/whatif", r, answer); err != nil {
		return nil, fmt.Errorf("what-if: %w", err)
	}
	return answer, nil
}
