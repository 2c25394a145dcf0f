package client

import (
	"context"
	"fmt"
	"net/url"

	"capper/client/api"
)

// The method Import records sends that another system made, with their own times, in one call. The method Import
// applies no limits. A second import of the same sends has no effect, so a caller can repeat a failed call unchanged.
// The method Import needs an API key with the scope admin.
func (c *Client) Import(ctx context.Context, r *api.ImportRequest) (*api.ImportAnswer, error) {
	return c.ImportInto(ctx, "", r)
}

// ImportInto works like Import, but records the sends in the given namespace. If the argument "namespace" is empty,
// ImportInto records the sends in the namespace without a name.
func (c *Client) ImportInto(ctx context.Context, namespace string, r *api.ImportRequest) (*api.ImportAnswer, error) {
	return imported[api.ImportAnswer](ctx, c, namespace, r, len(r.Sends))
}

// ImportIDsInto works like ImportInto for ids of every kind, such as UUIDs. The response has canonical ids.
func (c *Client) ImportIDsInto(ctx context.Context, namespace string, r *api.ImportRequestStrings) (
	*api.ImportAnswerStrings, error) {
	return imported[api.ImportAnswerStrings](ctx, c, namespace, r, len(r.Sends))
}

// The function "imported" makes the API call that imports n sends, and decodes the response.
func imported[Answer any](ctx context.Context, c *Client, namespace string, r any, n int) (*Answer, error) {
	var answer Answer
	if err := c.call(ctx, "POST", inNamespace("/v1/sends", url.Values{}, namespace), r, &answer); err != nil {
		return nil, fmt.Errorf("import %d sends: %w", n, err)
	}
	return &answer, nil
}
