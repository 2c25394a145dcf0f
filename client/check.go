package client

import (
	"context"
	"fmt"
	"net/url"

	"github.com/RoaringBitmap/roaring/v2"

	"capper/client/api"
)

// SendsCheckRequest asks which users have a recorded send of a message. A SendsCheckRequest names its users in exactly
// one of the fields Users, IDs, Bitmap, Packed and Images.
type SendsCheckRequest struct {
	MessageID string
	Namespace string // only for keys without a namespace; "": the key's own
	Channel   string // "": a send without a channel
	Users     []uint32
	IDs       []string        // ids of every kind, such as UUIDs; for CheckSendsOfIDs
	Bitmap    *roaring.Bitmap // not modified
	Packed    *Packed         // UUIDs or uint64 ids; for CheckSendsOfIDs
	Images    []uint64        // images of ids that are not dense; for CheckSendsOfIDs
}

// CheckSends returns which users have a recorded send of a message on a channel. CheckSends changes nothing and needs
// an API key with the scope read. The request must have Users or Bitmap.
func (c *Client) CheckSends(ctx context.Context, r *SendsCheckRequest) (*api.SendsCheck, error) {
	if (len(r.Users) > 0) == (r.Bitmap != nil) || len(r.IDs)+len(r.Images) > 0 ||
		r.Packed != nil {
		return nil, fmt.Errorf(
			"CheckSends for message %q: the request must set either Users or Bitmap, "+
				"and must leave IDs, Packed and Images empty",
			r.MessageID)
	}
	request := r.plain()
	request.UserIDs, request.UsersBitmap = r.Users, wireBitmap(r.Bitmap)
	return checkedSends[api.SendsCheck](ctx, c, r, request)
}

// CheckSendsOfIDs works like CheckSends, but for a request with IDs, Packed or Images. The result of CheckSendsOfIDs
// has canonical ids; for users in Images, it has "image:" and 16 hexadecimal digits.
func (c *Client) CheckSendsOfIDs(ctx context.Context, r *SendsCheckRequest) (*api.SendsCheckStrings, error) {
	forms := 0
	for _, given := range []bool{len(r.IDs) > 0, r.Packed != nil, len(r.Images) > 0} {
		if given {
			forms++
		}
	}
	if forms != 1 || len(r.Users) > 0 || r.Bitmap != nil {
		return nil, fmt.Errorf(
			"CheckSendsOfIDs for message %q: the request must set exactly one of IDs, Packed and Images, "+
				"and must leave Users and Bitmap empty",
			r.MessageID)
	}
	request := r.plain()
	if len(r.IDs) == 0 {
		request.UsersPacked = r.Packed.bytes()
		for _, image := range r.Images {
			request.Images = append(request.Images, fmt.Sprintf("%016x", image))
		}
		return checkedSends[api.SendsCheckStrings](ctx, c, r, request)
	}
	return checkedSends[api.SendsCheckStrings](ctx, c, r, struct {
		*api.SendsCheckRequest
		UserIDs []string `json:"user_ids"`
	}{request, r.IDs})
}

// The method "plain" returns the body of the API request with all fields except the users.
func (r *SendsCheckRequest) plain() *api.SendsCheckRequest {
	return &api.SendsCheckRequest{MessageID: r.MessageID, Channel: r.Channel}
}

// checkedSends calls the service with a request body, which contains the users, and decodes the response.
func checkedSends[Answer any](ctx context.Context, c *Client, r *SendsCheckRequest, body any) (*Answer, error) {
	var answer Answer
	if err := c.call(ctx, "POST", inNamespace("/v1/sends/check", url.Values{}, r.Namespace), body,
		&answer); err != nil {
		return nil, fmt.Errorf("check sends of %q: %w", r.MessageID, err)
	}
	return &answer, nil
}
