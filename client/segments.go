package client

import (
	"context"
	"fmt"
	"iter"
	"net/url"
	"strconv"

	"github.com/RoaringBitmap/roaring/v2"

	"capper/client/api"
)

// The method Segments lists the segments and sets of the current generation (published version).
func (c *Client) Segments(ctx context.Context) (*api.Segments, error) {
	return read[api.Segments](ctx, c, "/v1/segments")
}

// The method Generations lists the published generations (versions) of the segments, at the location from which the
// service loads them.
func (c *Client) Generations(ctx context.Context) (*api.Generations, error) {
	return read[api.Generations](ctx, c, "/v1/generations")
}

// GenerationChanges returns the differences of the segments and sets between one published generation and a later one.
func (c *Client) GenerationChanges(ctx context.Context, from, to string) (*api.GenerationChanges, error) {
	return read[api.GenerationChanges](ctx, c, "/v1/generations/"+url.PathEscape(to)+"/changes?"+
		url.Values{"since": {from}}.Encode())
}

// LookupRequest asks for the segment and the sets of users. A LookupRequest names its users in exactly one of the
// fields Users, IDs, Bitmap, Packed and Audience.
type LookupRequest struct {
	Users    []uint32        // the result lists users
	IDs      []string        // ids of every kind, such as UUIDs; the result lists them
	Packed   *Packed         // UUIDs or uint64 ids; the result has bitmaps of positions in Packed
	Bitmap   *roaring.Bitmap // dense ids; the result has bitmaps. It is not modified
	Audience *Audience       // for a single call; the result has bitmaps, packed ids, or lists of text ids
	Sets     []string        // also report membership in these sets; at most api.MaxLookupSets

	// Generation selects the generation of an earlier call, for consistent results; "": the current generation. An
	// Audience has its own generation.
	Generation string
}

// LookupResult holds the segment and the sets of users. A LookupResult has either Users, IDs, the maps of bitmaps, or
// the maps of packed ids. The way in which the request names users determines which of them.
type LookupResult struct {
	Generation string
	Users      []api.UserLookup     // in the order of the request, each once
	IDs        []api.UserLookupOfID // the same for IDs, or for an Audience of text ids

	Segments map[string]*roaring.Bitmap // by segment, without empty ones; api.NoSegment for users without a segment
	Sets     map[string]*roaring.Bitmap // members of each set of LookupRequest.Sets
	// With an Audience of UUIDs or uint64 ids, SegmentPacked and SetPacked replace Segments and Sets by packed ids.
	SegmentPacked map[string][]byte
	SetPacked     map[string][]byte
	Audience      *api.AudienceTaken // with an Audience: its users and the cursor of the next call
}

// The method Lookup returns, in one API call, the segment and the sets of users. The method Lookup records no sends.
func (c *Client) Lookup(ctx context.Context, r *LookupRequest) (*LookupResult, error) {
	if err := (&given{r.Users, r.IDs, r.Bitmap, r.Packed, r.Audience}).check("lookup"); err != nil {
		return nil, err
	}
	request := &api.LookupRequest{UserIDs: r.Users, UsersBitmap: wireBitmap(r.Bitmap), UsersPacked: r.Packed.bytes(),
		AudienceQuery: r.Audience.query(), Sets: r.Sets}
	if r.Audience == nil {
		request.Generation = r.Generation
	}
	switch {
	case len(r.Users) > 0:
		return lookedUp(ctx, c, request, func(a *api.LookupIDs) *LookupResult {
			return &LookupResult{Generation: a.Generation, Users: a.Users}
		})
	case len(r.IDs) > 0:
		return lookedUp(ctx, c, struct {
			*api.LookupRequest
			UserIDs []string `json:"user_ids"`
		}{request, r.IDs}, lookedUpStrings)
	case r.Packed != nil:
		return lookedUp(ctx, c, request, func(a *api.LookupPositions) *LookupResult {
			return &LookupResult{Generation: a.Generation, Segments: roaringOf(a.SegmentPositions),
				Sets: roaringOf(a.SetPositions)}
		})
	case r.Audience != nil:
		return lookedUp(ctx, c, request, func(l *lookupOfAudience) *LookupResult { return l.result })
	}
	return lookedUp(ctx, c, request, lookedUpBitmaps)
}

// lookupOfAudience is the response to a lookup of an audience. The kind of user ids of the deployment decides whether
// the response has bitmaps, packed ids or strings.
type lookupOfAudience struct{ result *LookupResult }

// UnmarshalJSON decodes a response with bitmaps, packed ids or strings.
func (l *lookupOfAudience) UnmarshalJSON(answer []byte) (err error) {
	switch form, wrong := formOf(answer, "segment", "users"); {
	case wrong != nil:
		return wrong
	case form == inPacked:
		l.result, err = decoded(answer, func(a *api.LookupPacked) *LookupResult {
			return &LookupResult{Generation: a.Generation, SegmentPacked: a.SegmentPacked, SetPacked: a.SetPacked,
				Audience: a.Audience}
		})
	case form == inStrings:
		l.result, err = decoded(answer, lookedUpStrings)
	default:
		l.result, err = decoded(answer, lookedUpBitmaps)
	}
	return err
}

func lookedUpBitmaps(a *api.LookupBitmaps) *LookupResult {
	return &LookupResult{Generation: a.Generation, Segments: roaringOf(a.Segments), Sets: roaringOf(a.Sets),
		Audience: a.Audience}
}

func lookedUpStrings(a *api.LookupStrings) *LookupResult {
	return &LookupResult{Generation: a.Generation, IDs: a.Users, Audience: a.Audience}
}

// lookedUp makes a lookup call and converts the response with the function in the argument "of".
func lookedUp[Answer any](ctx context.Context, c *Client, request any, of func(*Answer) *LookupResult) (*LookupResult,
	error) {
	var answer Answer
	if err := c.call(ctx, "POST", "/v1/segments/lookup", request, &answer); err != nil {
		return nil, fmt.Errorf("look up users: %w", err)
	}
	return of(&answer), nil
}

// SegmentBitmap returns the users of a segment or set, and the name of the segments generation (published version) that
// contains them. The argument "generation" of SegmentBitmap selects an earlier segments generation that the service
// still has in memory; "" selects the current one.
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

// The method Members iterates over the ids of a segment or set in pages, in ascending order. All pages of Members are
// from one generation (published version). An empty argument "generation" selects the generation that is current at the
// first page. The iteration ends after an error.
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

// MemberIDs works like Members, in a deployment whose ids are uint64, uuid or text. MemberIDs returns the ids in the
// order of their id images (64-bit hashes of ids).
func (c *Client) MemberIDs(ctx context.Context, name, generation string) iter.Seq2[*api.MemberStrings, error] {
	return func(yield func(*api.MemberStrings, error) bool) {
		parameters := url.Values{}
		for {
			page, err := read[api.MemberStrings](ctx, c, segmentPath(name, "members", parameters, generation))
			if !yield(page, err) || err != nil || page.Next == nil {
				return
			}
			generation = page.Generation
			parameters.Set("after", *page.Next)
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
