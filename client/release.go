package client

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"

	"github.com/RoaringBitmap/roaring/v2"

	"capper/client/api"
)

// ReleaseRequest releases sends that did not happen, so that their slots become free. Exactly one of Users, Bitmap
// and Audience must be set.
type ReleaseRequest struct {
	MessageID string
	Channel   string // "": every channel, and sends without one
	Users     []uint32
	Bitmap    *roaring.Bitmap // not modified
	Audience  *Audience       // for a single call, unless ReleaseAll divides it
}

// ReleaseResult is the answer to a release call. Users without such a send count as absent, which is no error.
type ReleaseResult struct {
	Released          []uint32
	Unavailable       []uint32 // unknown result: release again
	ReleasedBitmap    *roaring.Bitmap
	UnavailableBitmap *roaring.Bitmap
	// Audience describes, for a request with an Audience, its users, its generation and the cursor of the next call.
	Audience *api.AudienceTaken
	Summary  api.ReleaseSummary
}

func (r *ReleaseRequest) check() error {
	if !exactlyOne(r.Users, r.Bitmap, r.Audience) {
		return errors.New("release: exactly one of Users, Bitmap and Audience must be set")
	}
	return nil
}

// Release releases the sends of a request in one call.
func (c *Client) Release(ctx context.Context, r *ReleaseRequest) (*ReleaseResult, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	request := &api.ReleaseRequest{MessageID: r.MessageID, Channel: r.Channel, UserIDs: r.Users,
		AudienceQuery: r.Audience.query()}
	if len(r.Users) > 0 {
		var answer api.ReleaseIDs
		if err := c.call(ctx, "POST", "/v1/release", request, &answer); err != nil {
			return nil, fmt.Errorf("release %q: %w", r.MessageID, err)
		}
		return &ReleaseResult{Released: answer.Released, Unavailable: answer.Unavailable, Summary: answer.Summary}, nil
	}
	if r.Bitmap != nil {
		request.UsersBitmap = &api.Bitmap{Bitmap: r.Bitmap}
	}
	var answer api.ReleaseBitmaps
	if err := c.call(ctx, "POST", "/v1/release", request, &answer); err != nil {
		return nil, fmt.Errorf("release %q: %w", r.MessageID, err)
	}
	return &ReleaseResult{
		ReleasedBitmap: answer.ReleasedBitmap.OrEmpty(), UnavailableBitmap: answer.UnavailableBitmap.OrEmpty(),
		Audience: answer.Audience, Summary: answer.Summary,
	}, nil
}

// ReleaseAll releases sends like Release for any number of users, in batches like FilterAll. An Audience is divided
// into parts of one generation. Set the generation of the filter calls, because the current one may select other
// users.
func (c *Client) ReleaseAll(ctx context.Context, r *ReleaseRequest, each func(*ReleaseResult) error) error {
	if err := r.check(); err != nil {
		return err
	}
	if r.Audience == nil {
		return c.releaseBatches(ctx, r, c.batches(r.Users, r.Bitmap), each)
	}
	parts, err := c.Parts(ctx, r.Audience)
	if err != nil {
		return err
	}
	var done reached
	err = c.releaseBatches(ctx, r, parts.batches(), func(result *ReleaseResult) error {
		done.add(result.Summary.Requested)
		return each(result)
	})
	return parts.fault(done, err)
}

func (c *Client) releaseBatches(ctx context.Context, r *ReleaseRequest, batches iter.Seq[batch],
	each func(*ReleaseResult) error) error {
	var mu sync.Mutex
	return c.parallel(ctx, batches, func(ctx context.Context, b batch) error {
		request := *r
		request.Users, request.Bitmap, request.Audience = b.users, b.bitmap, b.audience
		result, err := c.Release(ctx, &request)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		return each(result)
	})
}
