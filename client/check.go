package client

import (
	"context"
	"fmt"
	"net/url"

	"github.com/RoaringBitmap/roaring/v2"

	"capper/client/api"
)

// SendsCheckRequest asks which users have a recorded send. Exactly one of Users and Bitmap must be set.
type SendsCheckRequest struct {
	MessageID string
	Namespace string // only for keys without a namespace; "": the key's own
	Channel   string // "": a send without a channel
	Users     []uint32
	Bitmap    *roaring.Bitmap // not modified
}

// CheckSends returns which users have a recorded send of a message on a channel. CheckSends changes nothing and needs
// a key with the scope read.
func (c *Client) CheckSends(ctx context.Context, r *SendsCheckRequest) (*api.SendsCheck, error) {
	if (len(r.Users) > 0) == (r.Bitmap != nil) {
		return nil, fmt.Errorf("check sends of %q: exactly one of Users and Bitmap must be set", r.MessageID)
	}
	request := &api.SendsCheckRequest{MessageID: r.MessageID, Channel: r.Channel, UserIDs: r.Users}
	if r.Bitmap != nil {
		request.UsersBitmap = &api.Bitmap{Bitmap: r.Bitmap}
	}
	var answer api.SendsCheck
	if err := c.call(ctx, "POST", inNamespace("/v1/sends/check", url.Values{}, r.Namespace), request,
		&answer); err != nil {
		return nil, fmt.Errorf("check sends of %q: %w", r.MessageID, err)
	}
	return &answer, nil
}
