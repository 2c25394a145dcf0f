package client

import (
	"context"
	"fmt"
	"strconv"
)

// Explain tells how a user stands.
func (c *Client) Explain(ctx context.Context, user uint32) (*Explanation, error) {
	return read[Explanation](ctx, c, userPath(user))
}

// Erase removes everything that is kept of a user. Absent is no error.
func (c *Client) Erase(ctx context.Context, user uint32) error {
	if err := c.call(ctx, "DELETE", userPath(user), nil, nil); err != nil {
		return fmt.Errorf("erase user %d: %w", user, err)
	}
	return nil
}

func userPath(user uint32) string { return "/v1/users/" + strconv.FormatUint(uint64(user), 10) }

// Limits reads the policy.
func (c *Client) Limits(ctx context.Context) (*Limits, error) {
	return read[Limits](ctx, c, "/v1/limits")
}

// Status reads the state of the service.
func (c *Client) Status(ctx context.Context) (*Status, error) {
	return read[Status](ctx, c, "/v1/status")
}

func read[T any](ctx context.Context, c *Client, path string) (*T, error) {
	answer := new(T)
	if err := c.call(ctx, "GET", path, nil, answer); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return answer, nil
}
