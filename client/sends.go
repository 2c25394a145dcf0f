package client

import (
	"context"
	"fmt"
	"net/url"

	"capper/client/api"
)

// Import records sends that were made elsewhere, at their own times, in one call. It decides nothing, and
// the same sends again are known: a call that failed is made again as it was. It needs a key of scope admin.
func (c *Client) Import(ctx context.Context, r *api.ImportRequest) (*api.ImportAnswer, error) {
	return c.ImportInto(ctx, "", r)
}

// ImportInto is Import of messages of a namespace; "": of the one without a name.
func (c *Client) ImportInto(ctx context.Context, namespace string, r *api.ImportRequest) (*api.ImportAnswer, error) {
	var answer api.ImportAnswer
	if err := c.call(ctx, "POST", inNamespace("/v1/sends", url.Values{}, namespace), r, &answer); err != nil {
		return nil, fmt.Errorf("import %d sends: %w", len(r.Sends), err)
	}
	return &answer, nil
}
