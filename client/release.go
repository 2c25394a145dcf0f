package client

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/RoaringBitmap/roaring/v2"

	"capper/client/api"
)

// ReleaseRequest gives back the slots of sends that did not go out. Either
// Users or Bitmap is set.
type ReleaseRequest struct {
	MessageID string
	Channel   string // "": every channel, and sends without one
	Users     []uint32
	Bitmap    *roaring.Bitmap // read only
}

// ReleaseResult is the answer. Users who had no such send are counted as
// absent; that is no error.
type ReleaseResult struct {
	Released          []uint32
	Unavailable       []uint32 // not known: release again
	ReleasedBitmap    *roaring.Bitmap
	UnavailableBitmap *roaring.Bitmap
	Summary           ReleaseSummary
}

// Release releases in one call.
func (c *Client) Release(ctx context.Context, r *ReleaseRequest) (*ReleaseResult, error) {
	if (len(r.Users) > 0) == (r.Bitmap != nil) {
		return nil, errors.New("release: exactly one of Users and Bitmap must be set")
	}
	request := &api.ReleaseRequest{MessageID: r.MessageID, Channel: r.Channel, UserIDs: r.Users}
	if r.Bitmap == nil {
		var answer api.ReleaseIDs
		if err := c.call(ctx, "POST", "/v1/release", request, &answer); err != nil {
			return nil, fmt.Errorf("release %q: %w", r.MessageID, err)
		}
		return &ReleaseResult{Released: answer.Released, Unavailable: answer.Unavailable, Summary: answer.Summary}, nil
	}
	request.UsersBitmap = &api.Bitmap{Bitmap: r.Bitmap}
	var answer api.ReleaseBitmaps
	if err := c.call(ctx, "POST", "/v1/release", request, &answer); err != nil {
		return nil, fmt.Errorf("release %q: %w", r.MessageID, err)
	}
	return &ReleaseResult{
		ReleasedBitmap: answer.ReleasedBitmap.OrEmpty(), UnavailableBitmap: answer.UnavailableBitmap.OrEmpty(),
		Summary: answer.Summary,
	}, nil
}

// ReleaseAll is Release for users of any number, in batches as FilterAll.
func (c *Client) ReleaseAll(ctx context.Context, r *ReleaseRequest, each func(*ReleaseResult) error) error {
	if (len(r.Users) > 0) == (r.Bitmap != nil) {
		return errors.New("release: exactly one of Users and Bitmap must be set")
	}
	var mu sync.Mutex
	return c.parallel(ctx, r.Users, r.Bitmap, func(ctx context.Context, users []uint32, part *roaring.Bitmap) error {
		result, err := c.Release(ctx, &ReleaseRequest{MessageID: r.MessageID, Channel: r.Channel, Users: users, Bitmap: part})
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		return each(result)
	})
}
