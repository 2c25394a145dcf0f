package client

import (
	"context"
	"fmt"
	"iter"
	"sync"

	"github.com/RoaringBitmap/roaring/v2"

	"capper/client/api"
)

// ReleaseRequest selects recorded sends that did not take place. After the release, limits no longer count the released
// sends. A ReleaseRequest names its users in exactly one of the fields Users, IDs, Bitmap, Packed and Audience.
type ReleaseRequest struct {
	MessageID string
	Channel   string // "": every channel, and sends without one
	Users     []uint32
	IDs       []string        // ids of every kind, such as UUIDs
	Bitmap    *roaring.Bitmap // not modified
	Packed    *Packed         // UUIDs or uint64 ids
	Audience  *Audience       // for a single call, unless ReleaseAll divides it
}

// ReleaseResult is the result of a release call. A ReleaseResult counts users without a recorded send of the message as
// absent. Absent users are no error.
type ReleaseResult struct {
	Released          []uint32
	Unavailable       []uint32 // users whose result is unknown: release again
	ReleasedIDs       []string // with IDs: canonical ids
	UnavailableIDs    []string
	ReleasedBitmap    *roaring.Bitmap // with Packed: positions in Packed
	UnavailableBitmap *roaring.Bitmap
	ReleasedPacked    []byte // with an Audience of UUIDs or uint64 ids: packed ids
	UnavailablePacked []byte
	// Audience, after a request with an Audience, has the number of users, the generation and the cursor of the next
	// call.
	Audience *api.AudienceTaken
	Summary  api.ReleaseSummary
}

func (r *ReleaseRequest) check() error {
	return (&given{r.Users, r.IDs, r.Bitmap, r.Packed, r.Audience}).check("release")
}

// The method Release releases the recorded sends that the request selects, in one API call.
func (c *Client) Release(ctx context.Context, r *ReleaseRequest) (*ReleaseResult, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	request := &api.ReleaseRequest{MessageID: r.MessageID, Channel: r.Channel, UserIDs: r.Users,
		UsersBitmap: wireBitmap(r.Bitmap), UsersPacked: r.Packed.bytes(), AudienceQuery: r.Audience.query()}
	var result *ReleaseResult
	var err error
	switch {
	case len(r.Users) > 0:
		result, err = released(ctx, c, request, func(a *api.ReleaseIDs) *ReleaseResult {
			return &ReleaseResult{Released: a.Released, Unavailable: a.Unavailable, Summary: a.Summary}
		})
	case len(r.IDs) > 0:
		result, err = released(ctx, c, struct {
			*api.ReleaseRequest
			UserIDs []string `json:"user_ids"`
		}{request, r.IDs}, releasedStrings)
	case r.Packed != nil:
		result, err = released(ctx, c, request, func(a *api.ReleasePositions) *ReleaseResult {
			return &ReleaseResult{ReleasedBitmap: a.ReleasedPositions.OrEmpty(),
				UnavailableBitmap: a.UnavailablePositions.OrEmpty(), Summary: a.Summary}
		})
	case r.Audience != nil:
		result, err = released(ctx, c, request, func(r *releaseOfAudience) *ReleaseResult { return r.result })
	default:
		result, err = released(ctx, c, request, releasedBitmaps)
	}
	if err != nil {
		return nil, fmt.Errorf("release %q: %w", r.MessageID, err)
	}
	return result, nil
}

func releasedBitmaps(a *api.ReleaseBitmaps) *ReleaseResult {
	return &ReleaseResult{ReleasedBitmap: a.ReleasedBitmap.OrEmpty(),
		UnavailableBitmap: a.UnavailableBitmap.OrEmpty(), Audience: a.Audience, Summary: a.Summary}
}

func releasedStrings(a *api.ReleaseStrings) *ReleaseResult {
	return &ReleaseResult{ReleasedIDs: a.Released, UnavailableIDs: a.Unavailable, Audience: a.Audience,
		Summary: a.Summary}
}

func releasedPacked(a *api.ReleasePacked) *ReleaseResult {
	return &ReleaseResult{ReleasedPacked: a.ReleasedPacked, UnavailablePacked: a.UnavailablePacked,
		Audience: a.Audience, Summary: a.Summary}
}

// releaseOfAudience is the response to a release call for an audience. The kind of user ids of the deployment decides
// whether the response has bitmaps, packed ids or strings.
type releaseOfAudience struct{ result *ReleaseResult }

// UnmarshalJSON decodes a response with bitmaps, packed ids or strings.
func (r *releaseOfAudience) UnmarshalJSON(answer []byte) (err error) {
	switch form, wrong := formOf(answer, "released", "released"); {
	case wrong != nil:
		return wrong
	case form == inPacked:
		r.result, err = decoded(answer, releasedPacked)
	case form == inStrings:
		r.result, err = decoded(answer, releasedStrings)
	default:
		r.result, err = decoded(answer, releasedBitmaps)
	}
	return err
}

// The function "released" makes a release call and converts the response with the function in the argument "of".
func released[Answer any](ctx context.Context, c *Client, request any, of func(*Answer) *ReleaseResult) (
	*ReleaseResult, error) {
	var answer Answer
	if err := c.call(ctx, "POST", "/v1/release", request, &answer); err != nil {
		return nil, err
	}
	return of(&answer), nil
}

// ReleaseAll works like Release, but for any number of users: it makes a call for each batch of users, like FilterAll.
// If the users are an Audience, ReleaseAll divides it into parts of one segments generation (published version). A
// caller of ReleaseAll should set Audience.Generation to the generation of the filter calls, because the current
// generation may select other users.
func (c *Client) ReleaseAll(ctx context.Context, r *ReleaseRequest, each func(*ReleaseResult) error) error {
	if err := r.check(); err != nil {
		return err
	}
	if r.Audience == nil {
		return c.releaseBatches(ctx, r, c.batches(&given{r.Users, r.IDs, r.Bitmap, r.Packed, nil}), each)
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
		request.Users, request.IDs, request.Bitmap = b.users, b.ids, b.bitmap
		request.Packed, request.Audience = b.packed, b.audience
		result, err := c.Release(ctx, &request)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		return each(result)
	})
}
