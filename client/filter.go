package client

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"capper/client/api"
)

// FilterRequest asks which users may receive a send. A FilterRequest names its users in exactly one of the fields
// Users, IDs, Bitmap, Packed and Audience.
type FilterRequest struct {
	MessageID string          // names the message, 1 to 128 bytes; may be "" with Preview
	Channel   string          // "": none. The same message id on two channels stands for two sends
	Users     []uint32        // sent as ids; repeated ids are decided once
	IDs       []string        // ids of every kind, such as UUIDs; the response has ids
	Packed    *Packed         // UUIDs or uint64 ids; the response has bitmaps of positions in Packed
	Bitmap    *roaring.Bitmap // dense ids; the response has bitmaps. Filter does not modify the Bitmap
	// Audience lets the service select the users by an expression. The response has bitmaps of dense ids, packed UUIDs
	// or uint64 ids, or lists of text ids. Filter makes only one call for an Audience; FilterAll divides it.
	Audience *Audience

	Exempt  bool      // deny nobody, but record the sends (enforce: false)
	Preview bool      // only decide, record nothing (record: false)
	At      time.Time // with Preview: the time for which to decide; zero: now
	Counts  bool      // leave out the list of denied users (detail: counts)
	Waves   bool      // group the denied users by the hour in which they become eligible
}

// FilterResult is the result of a filter call: which users are allowed, denied or unavailable. The way in which the
// request names its users determines which fields of the FilterResult are filled. If the request has the field Users,
// the fields Allowed, Replayed, Denied and Unavailable of the FilterResult are filled. If the request has IDs, or an
// Audience of text ids, the fields of the FilterResult whose names end in IDs are filled. If the request has a Bitmap,
// or an Audience of dense ids, the bitmaps of the FilterResult are filled. If the request has an Audience of UUIDs or
// uint64 ids, the fields of the FilterResult whose names end in Packed are filled. If the request has Packed, the
// bitmaps of the FilterResult hold positions in Packed, counted from 0. If an id occurs repeatedly in the field Packed
// of the request, the bitmaps hold the position of its first occurrence.
type FilterResult struct {
	Allowed     []uint32 // users who may receive the send, in the order of the request
	Replayed    []uint32 // allowed users whose send an earlier call with the message id and channel had recorded
	Denied      []api.Denial
	Unavailable []uint32 // undecided users: retry with the same message id

	AllowedIDs     []string // canonical ids
	ReplayedIDs    []string
	DeniedIDs      []api.DenialOfID
	UnavailableIDs []string

	AllowedBitmap  *roaring.Bitmap
	ReplayedBitmap *roaring.Bitmap
	// by the name of the limit, or LimitSuppressed, LimitHoldout, LimitQuiet
	DeniedBitmaps     map[string]*roaring.Bitmap
	UnavailableBitmap *roaring.Bitmap

	// For an Audience of UUIDs or uint64 ids, these fields hold packed ids, in the form of the type Packed.
	AllowedPacked     []byte
	ReplayedPacked    []byte
	DeniedPacked      map[string][]byte // by limit, like DeniedBitmaps
	UnavailablePacked []byte

	Audience *api.AudienceTaken // with an Audience: its users, its generation and the cursor of the next call

	Waves         []Wave
	Summary       api.Summary
	Generation    string // segments generation that the decisions used
	ConfigVersion string // configuration version that the decisions used
}

// The type Wave is a group of denied users who become eligible within the same hour, which begins at From. A caller can
// retry the users of a Wave together.
type Wave struct {
	From    time.Time // start of the hour
	ReadyAt time.Time // time from which all users of the group are eligible
	Users   []uint32
	IDs     []string
	Bitmap  *roaring.Bitmap
	Packed  []byte
}

// The method Filter asks the service, in one filter call, which users may receive a send, and records the sends. The
// method Filter repeats the call for unavailable users, up to Config.Attempts times, unless Config.LeaveUnavailable is
// true. In the result of Filter, every user is either allowed, denied or unavailable. The service rejects a filter call
// with too many users; use FilterAll instead.
func (c *Client) Filter(ctx context.Context, r *FilterRequest) (*FilterResult, error) {
	result, err := c.filterOnce(ctx, r)
	if err != nil {
		return nil, err
	}
	for attempt := 1; !c.cfg.LeaveUnavailable && result.Summary.Unavailable > 0 && attempt < c.cfg.Attempts; attempt++ {
		if c.wait(ctx, attempt, nil) != nil {
			return result, nil // the remaining users stay unavailable
		}
		rest, open := r.rest(result)
		again, err := c.filterOnce(ctx, rest)
		if err != nil {
			return result, nil
		}
		switch {
		case len(result.UnavailablePacked) > 0:
			again.unpack(rest.Packed)
		case open != nil:
			again.move(open)
		}
		result.settle(again)
	}
	return result, nil
}

// The method "rest" returns a request for the users who are unavailable in the result. If the request has the field
// Packed, the method "rest" also returns the positions of the unavailable users in r.Packed.
func (r *FilterRequest) rest(result *FilterResult) (rest *FilterRequest, open []uint32) {
	again := *r
	again.Users, again.IDs, again.Audience = result.Unavailable, result.UnavailableIDs, nil
	switch {
	case len(result.UnavailablePacked) > 0:
		again.Packed = &Packed{Bytes: result.UnavailablePacked,
			Width: len(result.UnavailablePacked) / max(result.Summary.Unavailable, 1)}
		return &again, nil
	case r.Packed == nil:
		again.Bitmap = result.UnavailableBitmap
		return &again, nil
	}
	open = result.UnavailableBitmap.ToArray()
	again.Packed = r.Packed.pick(open)
	return &again, open
}

// The method "move" converts positions in the packed ids of a repeated call to positions in the packed ids of the first
// call. open[i] is the position, in the first call, of the id at position i of the repeated call.
func (r *FilterResult) move(open []uint32) {
	r.AllowedBitmap, r.ReplayedBitmap = among(open, r.AllowedBitmap), among(open, r.ReplayedBitmap)
	r.UnavailableBitmap = among(open, r.UnavailableBitmap)
	for limit, users := range r.DeniedBitmaps {
		r.DeniedBitmaps[limit] = among(open, users)
	}
	for i := range r.Waves {
		r.Waves[i].Bitmap = among(open, r.Waves[i].Bitmap)
	}
}

// The method "unpack" changes the result of a call whose request contained packed ids: it replaces positions in the
// request by the ids themselves.
func (r *FilterResult) unpack(asked *Packed) {
	ids := func(positions *roaring.Bitmap) []byte { return asked.pick(positions.ToArray()).Bytes }
	r.AllowedPacked, r.ReplayedPacked = ids(r.AllowedBitmap), ids(r.ReplayedBitmap)
	r.UnavailablePacked = ids(r.UnavailableBitmap)
	r.DeniedPacked = make(map[string][]byte, len(r.DeniedBitmaps))
	for limit, positions := range r.DeniedBitmaps {
		r.DeniedPacked[limit] = ids(positions)
	}
	for i := range r.Waves {
		r.Waves[i].Packed, r.Waves[i].Bitmap = ids(r.Waves[i].Bitmap), nil
	}
	r.AllowedBitmap, r.ReplayedBitmap, r.UnavailableBitmap, r.DeniedBitmaps = nil, nil, nil, nil
}

func (c *Client) filterOnce(ctx context.Context, r *FilterRequest) (*FilterResult, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	var result *FilterResult
	var err error
	switch request := r.wire(); {
	case len(r.Users) > 0:
		result, err = filtered(ctx, c, request, resultOfIDs)
	case len(r.IDs) > 0:
		result, err = filtered(ctx, c, struct {
			*api.FilterRequest
			UserIDs []string `json:"user_ids"`
		}{request, r.IDs}, resultOfStrings)
	case r.Packed != nil:
		result, err = filtered(ctx, c, request, resultOfPositions)
	case r.Audience != nil:
		result, err = filtered(ctx, c, request, func(f *filterOfAudience) *FilterResult { return f.result })
	default:
		result, err = filtered(ctx, c, request, resultOfBitmaps)
	}
	if err != nil {
		return nil, fmt.Errorf("filter %q: %w", r.MessageID, err)
	}
	return result, nil
}

// The function "filtered" makes a filter call and converts the response with the function in the argument "of".
func filtered[Answer any](ctx context.Context, c *Client, request any, of func(*Answer) *FilterResult) (*FilterResult,
	error) {
	var answer Answer
	if err := c.call(ctx, "POST", "/v1/filter", request, &answer); err != nil {
		return nil, err
	}
	return of(&answer), nil
}

// filterOfAudience is the response to a filter call for an audience. The kind of user ids of the deployment decides
// whether the response has bitmaps, packed ids or strings.
type filterOfAudience struct{ result *FilterResult }

// UnmarshalJSON decodes a response with bitmaps, packed ids or strings.
func (f *filterOfAudience) UnmarshalJSON(answer []byte) (err error) {
	switch form, wrong := formOf(answer, "allowed", "replayed"); {
	case wrong != nil:
		return wrong
	case form == inPacked:
		f.result, err = decoded(answer, resultOfPacked)
	case form == inStrings:
		f.result, err = decoded(answer, resultOfStrings)
	default:
		f.result, err = decoded(answer, resultOfBitmaps)
	}
	return err
}

func (r *FilterRequest) check() error {
	return (&given{r.Users, r.IDs, r.Bitmap, r.Packed, r.Audience}).check("filter")
}

func (r *FilterRequest) wire() *api.FilterRequest {
	no := false
	w := &api.FilterRequest{MessageID: r.MessageID, Channel: r.Channel, UserIDs: r.Users,
		UsersBitmap: wireBitmap(r.Bitmap), UsersPacked: r.Packed.bytes(), AudienceQuery: r.Audience.query(),
		Waves: r.Waves}
	if r.Exempt {
		w.Enforce = &no
	}
	if r.Preview {
		w.Record = &no
	}
	if r.Counts {
		w.Detail = api.DetailCounts
	}
	if !r.At.IsZero() {
		w.At = &r.At
	}
	return w
}

// resultOf returns a FilterResult that has only the fields that do not depend on the kind of ids, such as the summary.
func resultOf[W any](summary api.Summary, generation, config string, taken *api.AudienceTaken, waves []W,
	of func(*W) Wave) *FilterResult {
	r := &FilterResult{Audience: taken, Summary: summary, Generation: generation, ConfigVersion: config}
	for i := range waves {
		r.Waves = append(r.Waves, of(&waves[i]))
	}
	return r
}

func resultOfIDs(a *filteredIDs) *FilterResult {
	r := resultOf(a.Summary, a.Generation, a.ConfigVersion, nil, a.Waves, func(w *api.WaveIDs) Wave {
		return Wave{From: w.From, ReadyAt: w.ReadyAt, Users: w.UserIDs}
	})
	r.Allowed, r.Replayed, r.Denied, r.Unavailable = a.Allowed, a.Replayed, a.Denied, a.Unavailable
	return r
}

func resultOfPacked(a *api.FilterPacked) *FilterResult {
	r := resultOf(a.Summary, a.Generation, a.ConfigVersion, a.Audience, a.Waves, func(w *api.WavePacked) Wave {
		return Wave{From: w.From, ReadyAt: w.ReadyAt, Packed: w.UsersPacked}
	})
	r.AllowedPacked, r.ReplayedPacked, r.DeniedPacked = a.AllowedPacked, a.ReplayedPacked, a.DeniedPacked
	r.UnavailablePacked = a.UnavailablePacked
	return r
}

func resultOfStrings(a *filteredStrings) *FilterResult {
	r := resultOf(a.Summary, a.Generation, a.ConfigVersion, a.Audience, a.Waves, func(w *api.WaveStrings) Wave {
		return Wave{From: w.From, ReadyAt: w.ReadyAt, IDs: w.UserIDs}
	})
	r.AllowedIDs, r.ReplayedIDs, r.DeniedIDs, r.UnavailableIDs = a.Allowed, a.Replayed, a.Denied, a.Unavailable
	return r
}

func resultOfPositions(a *api.FilterPositions) *FilterResult {
	r := resultOf(a.Summary, a.Generation, a.ConfigVersion, nil, a.Waves, func(w *api.WavePositions) Wave {
		return Wave{From: w.From, ReadyAt: w.ReadyAt, Bitmap: w.Positions.OrEmpty()}
	})
	r.AllowedBitmap, r.ReplayedBitmap = a.AllowedPositions.OrEmpty(), a.ReplayedPositions.OrEmpty()
	r.DeniedBitmaps, r.UnavailableBitmap = roaringOf(a.DeniedPositions), a.UnavailablePositions.OrEmpty()
	return r
}

func resultOfBitmaps(a *api.FilterBitmaps) *FilterResult {
	r := resultOf(a.Summary, a.Generation, a.ConfigVersion, a.Audience, a.Waves, func(w *api.WaveBitmap) Wave {
		return Wave{From: w.From, ReadyAt: w.ReadyAt, Bitmap: w.UsersBitmap.OrEmpty()}
	})
	r.AllowedBitmap, r.ReplayedBitmap = a.AllowedBitmap.OrEmpty(), a.ReplayedBitmap.OrEmpty()
	r.DeniedBitmaps, r.UnavailableBitmap = roaringOf(a.DeniedBitmaps), a.UnavailableBitmap.OrEmpty()
	return r
}

func roaringOf(bitmaps map[string]api.Bitmap) map[string]*roaring.Bitmap {
	users := make(map[string]*roaring.Bitmap, len(bitmaps))
	for name, bitmap := range bitmaps {
		users[name] = bitmap.OrEmpty()
	}
	return users
}

// The method "settle" merges into r the result of a repeated filter call about the unavailable users of r.
func (r *FilterResult) settle(again *FilterResult) {
	r.Allowed = append(r.Allowed, again.Allowed...)
	r.Replayed = append(r.Replayed, again.Replayed...)
	r.Denied = append(r.Denied, again.Denied...)
	r.Unavailable = again.Unavailable
	r.AllowedIDs = append(r.AllowedIDs, again.AllowedIDs...)
	r.ReplayedIDs = append(r.ReplayedIDs, again.ReplayedIDs...)
	r.DeniedIDs = append(r.DeniedIDs, again.DeniedIDs...)
	r.UnavailableIDs = again.UnavailableIDs
	r.AllowedPacked = append(r.AllowedPacked, again.AllowedPacked...)
	r.ReplayedPacked = append(r.ReplayedPacked, again.ReplayedPacked...)
	r.UnavailablePacked = again.UnavailablePacked
	for limit, users := range again.DeniedPacked {
		if r.DeniedPacked != nil {
			r.DeniedPacked[limit] = append(r.DeniedPacked[limit], users...)
		}
	}
	if r.AllowedBitmap != nil {
		r.AllowedBitmap.Or(again.AllowedBitmap)
		r.ReplayedBitmap.Or(again.ReplayedBitmap)
		r.UnavailableBitmap = again.UnavailableBitmap
		for limit, users := range again.DeniedBitmaps {
			r.DeniedBitmaps[limit] = union(r.DeniedBitmaps[limit], users)
		}
	}
	for _, wave := range again.Waves {
		r.addWave(wave)
	}
	settleSummary(&r.Summary, &again.Summary)
	r.Generation, r.ConfigVersion = again.Generation, again.ConfigVersion
}

func union(a, b *roaring.Bitmap) *roaring.Bitmap {
	if a == nil {
		return b
	}
	a.Or(b)
	return a
}

func (r *FilterResult) addWave(wave Wave) {
	i, found := slices.BinarySearchFunc(r.Waves, wave, func(a, b Wave) int { return a.From.Compare(b.From) })
	if !found {
		r.Waves = slices.Insert(r.Waves, i, wave)
		return
	}
	same := &r.Waves[i]
	same.Users = append(same.Users, wave.Users...)
	same.IDs = append(same.IDs, wave.IDs...)
	same.Packed = append(same.Packed, wave.Packed...)
	if wave.Bitmap != nil {
		same.Bitmap = union(same.Bitmap, wave.Bitmap)
	}
	if wave.ReadyAt.After(same.ReadyAt) {
		same.ReadyAt = wave.ReadyAt
	}
}

// settleSummary adds the counts of a repeated filter call to the summary of the first call. The number of requested
// users stays unchanged, because the first call already counted the users of the repeated call.
func settleSummary(s, again *api.Summary) {
	more := *again
	more.Requested, more.Duplicates = 0, 0
	more.Segments = make(map[string]api.SegmentSummary, len(again.Segments))
	for segment, counts := range again.Segments {
		more.Segments[segment] = api.SegmentSummary{Allowed: counts.Allowed}
	}
	s.Unavailable = 0
	s.Add(&more)
}
