package client

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"strconv"

	"github.com/RoaringBitmap/roaring/v2"

	"capper/client/api"
)

// Segments lists the segments and sets of the current generation.
func (c *Client) Segments(ctx context.Context) (*api.Segments, error) {
	return read[api.Segments](ctx, c, "/v1/segments")
}

// Generations lists the generations at the service's segments source.
func (c *Client) Generations(ctx context.Context) (*api.Generations, error) {
	return read[api.Generations](ctx, c, "/v1/generations")
}

// GenerationChanges returns the differences between a generation at the source and a later one.
func (c *Client) GenerationChanges(ctx context.Context, from, to string) (*api.GenerationChanges, error) {
	return read[api.GenerationChanges](ctx, c, "/v1/generations/"+url.PathEscape(to)+"/changes?"+
		url.Values{"since": {from}}.Encode())
}

// LookupRequest asks for the segment and sets of users. Exactly one of Users, Bitmap and Audience must be set.
type LookupRequest struct {
	Users    []uint32        // the answer lists users
	Bitmap   *roaring.Bitmap // the answer has bitmaps. It is not modified
	Audience *Audience       // the answer has bitmaps. For a single call
	Sets     []string        // also report membership in these sets; at most api.MaxLookupSets

	// Generation selects the generation of an earlier call, for a consistent answer; "": the current one. An Audience
	// has its own generation.
	Generation string
}

// LookupResult is the answer to a lookup: Users, or the bitmaps.
type LookupResult struct {
	Generation string
	Users      []api.UserLookup // in the order of the request, each once

	Segments map[string]*roaring.Bitmap // by segment, without empty ones; api.NoSegment for users without a segment
	Sets     map[string]*roaring.Bitmap // members of each set of LookupRequest.Sets
	Audience *api.AudienceTaken         // with an Audience: its users and the cursor of the next call
}

// Lookup returns the segment and the sets of users in one call. The call records no sends.
func (c *Client) Lookup(ctx context.Context, r *LookupRequest) (*LookupResult, error) {
	if !exactlyOne(r.Users, r.Bitmap, r.Audience) {
		return nil, errors.New("lookup: exactly one of Users, Bitmap and Audience must be set")
	}
	request := &api.LookupRequest{UserIDs: r.Users, AudienceQuery: r.Audience.query(), Sets: r.Sets}
	if r.Audience == nil {
		request.Generation = r.Generation
	}
	if len(r.Users) > 0 {
		var answer api.LookupIDs
		if err := c.call(ctx, "POST", "/v1/segments/lookup", request, &answer); err != nil {
			return nil, fmt.Errorf("look up users: %w", err)
		}
		return &LookupResult{Generation: answer.Generation, Users: answer.Users}, nil
	}
	if r.Bitmap != nil {
		request.UsersBitmap = &api.Bitmap{Bitmap: r.Bitmap}
	}
	var answer api.LookupBitmaps
	if err := c.call(ctx, "POST", "/v1/segments/lookup", request, &answer); err != nil {
		return nil, fmt.Errorf("look up users: %w", err)
	}
	return &LookupResult{
		Generation: answer.Generation, Segments: roaringOf(answer.Segments), Sets: roaringOf(answer.Sets),
		Audience: answer.Audience,
	}, nil
}

// SegmentBitmap returns the users of a segment or set, and the name of their generation. The argument generation
// selects a kept generation; "" selects the current one.
func (c *Client) SegmentBitmap(ctx context.Context, name, generation string) (users *roaring.Bitmap, of string,
	err error) {
	var answer file
	path := segmentPath(name, "bitmap", url.Values{}, generation)
	if err := c.call(ctx, "GET", path, nil, &answer); err != nil {
		return nil, "", fmt.Errorf("read %s: %w", path, err)
	}
	var bitmap api.Bitmap
	if err := bitmap.UnmarshalBinary(answer.content); err != nil {
		return nil, "", fmt.Errorf("read %s: %w", path, err)
	}
	return bitmap.Bitmap, answer.header.Get(api.HeaderGeneration), nil
}

// Members iterates over the ids of a segment or set in pages, in ascending order. All pages are from one generation;
// "" selects the current one at the first page. The iteration ends after an error.
func (c *Client) Members(ctx context.Context, name, generation string) iter.Seq2[*api.Members, error] {
	return func(yield func(*api.Members, error) bool) {
		parameters := url.Values{}
		for {
			page, err := read[api.Members](ctx, c, segmentPath(name, "members", parameters, generation))
			if !yield(page, err) || err != nil || page.Next == nil {
				return
			}
			generation = page.Generation
			parameters.Set("after", strconv.FormatUint(uint64(*page.Next), 10))
		}
	}
}

func segmentPath(name, what string, parameters url.Values, generation string) string {
	if generation != "" {
		parameters.Set("generation", generation)
	}
	path := "/v1/segments/" + url.PathEscape(name) + "/" + what
	if len(parameters) == 0 {
		return path
	}
	return path + "?" + parameters.Encode()
}
