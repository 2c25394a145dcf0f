package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"capper/client/api"
)

// Audience selects users by an expression over the segments and sets of one generation (published version).
type Audience struct {
	// Expression combines names of segments and sets with & (both), | (either), - (the first without the second) and
	// parentheses, such as "active - country/my". A blank must precede the operator -. The operator & binds first; the
	// operators | and - are evaluated from left to right.
	Expression string
	Generation string      // "": the current one at the first call
	Sample     *api.Sample // only a share of the users; nil: all

	// Part, MaxUsers and Cursor select the users of one API call. FilterAll and ReleaseAll set these fields, and reject
	// an audience in which they are set.
	Part     *api.Part // one of several parts
	MaxUsers int       // maximum users, the lowest ids first; AudienceTaken.Next selects the rest. 0: all
	Cursor   string    // AudienceTaken.Next of the previous call
}

func (a *Audience) query() api.AudienceQuery {
	if a == nil {
		return api.AudienceQuery{}
	}
	return api.AudienceQuery{
		Audience: a.Expression, Generation: a.Generation, Sample: a.Sample,
		Part: a.Part, MaxUsers: a.MaxUsers, Cursor: a.Cursor,
	}
}

// AudienceCount counts the users of an audience, by segment and by set.
func (c *Client) AudienceCount(ctx context.Context, a *Audience) (*api.AudienceCount, error) {
	return c.Count(ctx, &CountRequest{Audience: a})
}

// AudiencePreview counts the users of an audience by segment and by set, like AudienceCount. The field Preview of the
// result of AudiencePreview also counts the users who could receive a message on the channel now. If the argument for
// the channel is empty, AudiencePreview previews sends without a channel.
func (c *Client) AudiencePreview(ctx context.Context, a *Audience, channel string) (*api.AudienceCount, error) {
	return c.Count(ctx, &CountRequest{Audience: a, Channel: &channel})
}

// CountRequest asks for the number of users in an audience. A CountRequest records no sends.
type CountRequest struct {
	Audience *Audience // required
	// Total asks only for the total number of users, which costs much less. The result then has no Segments and no
	// Sets.
	Total bool
	// Channel asks for the Preview: the number of users who could receive a send on the channel now ("": a send without
	// a channel). If Channel is nil, the result has no Preview.
	Channel *string
}

// The method Count returns the number of users in an audience. If an audience with a preview has more than
// Config.BatchBitmap users, Count makes several API calls. If the service rejects a call with too many users, Count
// makes calls with fewer users.
//
// All API calls of one preview use the same generation (published version) of the segments and the same configuration.
// The fields PreviewGeneration and ConfigVersion of the result name the generation and the configuration of the
// preview. If the generation or the configuration changes between two API calls, Count starts again, up to
// Config.Attempts times.
func (c *Client) Count(ctx context.Context, r *CountRequest) (*api.AudienceCount, error) {
	if r.Audience == nil {
		return nil, errors.New("count users: the audience expression must be set")
	}
	if r.Channel == nil {
		return c.count(ctx, r.Audience, r)
	}
	for attempt := 1; ; attempt++ {
		answer, err := c.previewOnce(ctx, r)
		if !errors.Is(err, errDecidedByTwo) || attempt == c.cfg.Attempts {
			return answer, err
		}
		if waited := c.wait(ctx, attempt, nil); waited != nil {
			return nil, errors.Join(waited, err)
		}
	}
}

// errDecidedByTwo reports that the API calls of one preview used two generations (published versions) of the segments,
// or two configurations. The sum of results from different generations or configurations would be meaningless.
var errDecidedByTwo = errors.New(
	"count users: the segments or the configuration changed during the count, or differ between instances: try again")

func (c *Client) previewOnce(ctx context.Context, r *CountRequest) (*api.AudienceCount, error) {
	a := r.Audience
	whole, err := c.count(ctx, a, &CountRequest{Total: r.Total})
	if err != nil {
		return nil, err
	}
	pinned := *a
	pinned.Generation, pinned.Expression = whole.Generation, cmp.Or(whole.Expression, a.Expression)
	for size := c.cfg.BatchBitmap; ; size = (size + 1) / 2 {
		parts := &Parts{List: []Audience{pinned}}
		if whole.Users > uint64(size) && !a.ofOneCall() {
			parts = cut(a, whole, size)
		}
		err := c.preview(ctx, parts, r, whole)
		switch {
		case err == nil && a.inUse() && whole.PreviewGeneration != "" && whole.PreviewGeneration != whole.Generation:
			return nil, errDecidedByTwo
		case err == nil:
			return whole, nil
		case !HasCode(err, CodeTooLarge) || size == 1 || a.ofOneCall() || len(parts.List) == api.MaxParts:
			return nil, err
		}
	}
}

// The method "preview" makes an API call for each part of an audience, and stores the sum of the previews in the
// argument "into". The method "preview" also stores there the generation (published version) and the configuration
// version that the service used.
func (c *Client) preview(ctx context.Context, parts *Parts, r *CountRequest, into *api.AudienceCount) error {
	var mu sync.Mutex
	into.Preview = nil
	return c.parallel(ctx, parts.batches(), func(ctx context.Context, b batch) error {
		part, err := c.count(ctx, b.audience, r)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		if into.Preview == nil {
			into.Preview = new(api.Summary)
			into.PreviewGeneration, into.ConfigVersion = part.PreviewGeneration, part.ConfigVersion
		}
		if part.PreviewGeneration != into.PreviewGeneration || part.ConfigVersion != into.ConfigVersion {
			return errDecidedByTwo
		}
		into.Preview.Add(part.Preview)
		return nil
	})
}

// The method "count" makes one API call that counts an audience, or only the users whom Part, MaxUsers or Cursor
// select.
func (c *Client) count(ctx context.Context, a *Audience, r *CountRequest) (*api.AudienceCount, error) {
	answer := new(api.AudienceCount)
	request := &api.AudienceCountRequest{AudienceQuery: a.query(), Channel: r.Channel}
	if r.Total {
		request.Detail = api.DetailTotal
	}
	if err := c.call(ctx, "POST", "/v1/audience/count", request, answer); err != nil {
		return nil, fmt.Errorf("count audience %q: %w", a.Expression, err)
	}
	return answer, nil
}

// ForecastRequest asks for the number of users who could receive a message at each of several times. A ForecastRequest
// names its users in exactly one of the fields Users, IDs, Bitmap, Packed and Audience.
type ForecastRequest struct {
	Channel  string // "": none
	Users    []uint32
	IDs      []string        // ids of every kind, such as UUIDs
	Bitmap   *roaring.Bitmap // not modified
	Packed   *Packed         // UUIDs or uint64 ids
	Audience *Audience       // for a single call
	At       []time.Time     // at most api.MaxForecasts times; empty: now
	Used     bool            // also count the users by the number of their sends that count now
}

// The method Forecast returns the decisions that filter calls would return at the given times, if no message is sent
// before these times. The method Forecast records no sends.
func (c *Client) Forecast(ctx context.Context, r *ForecastRequest) (*api.Forecast, error) {
	if err := (&given{r.Users, r.IDs, r.Bitmap, r.Packed, r.Audience}).check("forecast"); err != nil {
		return nil, err
	}
	var request any = &api.ForecastRequest{Channel: r.Channel, UserIDs: r.Users, UsersBitmap: wireBitmap(r.Bitmap),
		UsersPacked: r.Packed.bytes(), AudienceQuery: r.Audience.query(), At: r.At, Used: r.Used}
	if len(r.IDs) > 0 {
		request = struct {
			*api.ForecastRequest
			UserIDs []string `json:"user_ids"`
		}{request.(*api.ForecastRequest), r.IDs}
	}
	answer := new(api.Forecast)
	if err := c.call(ctx, "POST", "/v1/forecast", request, answer); err != nil {
		return nil, fmt.Errorf("forecast: %w", err)
	}
	return answer, nil
}

// The type Parts is an audience in one generation (published version) of the segments, divided so that each part fits
// into an API call. The parts contain the definition of each named expression instead of its name, so that a reload of
// the service's configuration does not change the parts.
type Parts struct {
	Generation string // generation of all parts, so that a publish in between changes none of them
	Users      uint64 // users of all parts
	List       []Audience
}

// The method Parts divides the audience, in one generation (published version) of the segments, into at most
// api.MaxParts parts of about Config.BatchBitmap users. An empty audience has no parts.
func (c *Client) Parts(ctx context.Context, a *Audience) (*Parts, error) {
	if a.ofOneCall() {
		return nil, errors.New(
			"read all parts of an audience: the fields Part, MaxUsers and Cursor of the audience must be empty")
	}
	count, err := c.AudienceCount(ctx, a)
	if err != nil {
		return nil, err
	}
	return cut(a, count, c.cfg.BatchBitmap), nil
}

// ofOneCall reports whether Part, MaxUsers or Cursor restricts the audience; these fields apply to a single API call.
func (a *Audience) ofOneCall() bool { return a.Part != nil || a.MaxUsers != 0 || a.Cursor != "" }

// inUse reports whether the audience refers to the generation (published version) that the service uses now.
func (a *Audience) inUse() bool { return a.Generation == "" && a.Cursor == "" }

// The function "cut" divides an audience into parts of about "size" users each. The argument count is the result of
// counting the audience.
func cut(a *Audience, count *api.AudienceCount, size int) *Parts {
	parts := &Parts{Generation: count.Generation, Users: count.Users}
	of := int(min((count.Users+uint64(size)-1)/uint64(size), api.MaxParts))
	for i := range of {
		parts.List = append(parts.List, Audience{
			Expression: cmp.Or(count.Expression, a.Expression), Generation: count.Generation, Sample: a.Sample,
			Part: &api.Part{Of: of, Index: i},
		})
	}
	return parts
}

// The method "batches" returns the parts of the audience as batches. FilterAll and ReleaseAll send each batch in a
// separate call.
func (p *Parts) batches() iter.Seq[batch] {
	return func(yield func(batch) bool) {
		for i := range p.List {
			if !yield(batch{audience: &p.List[i]}) {
				return
			}
		}
	}
}

// AudienceError reports that FilterAll or ReleaseAll ended before all parts of an audience had a result. If the service
// no longer has the segments generation (published version) of the audience, HasCode(err, CodeGone) returns true for
// the AudienceError. After an AudienceError, the service keeps the sends that it has already recorded. If the service
// no longer has the generation of the AudienceError, callers may repeat FilterAll with the same message id and the
// current generation. The repeated call of FilterAll returns the users with recorded sends in the list Replayed. After
// any other AudienceError, a new call of FilterAll with the Generation of the AudienceError completes the interrupted
// call.
type AudienceError struct {
	Generation  string // generation of the run
	Parts, Done int    // Done: number of parts for which the service has returned a response
	Users       uint64 // users of all parts
	Asked       uint64 // users of the parts for which the service has returned a response
	Err         error
}

// The method Error returns a text with the cause of the failure, and with the numbers of parts and users that have a
// result.
func (e *AudienceError) Error() string {
	reached := fmt.Sprintf("%d of %d parts (%d of %d users) of generation %s", e.Done, e.Parts, e.Asked, e.Users,
		e.Generation)
	if HasCode(e.Err, CodeGone) {
		return fmt.Sprintf("after %s: %v; granted sends are recorded: a run with the same message id on the "+
			"generation in use counts no user twice", reached, e.Err)
	}
	return fmt.Sprintf("after %s: %v", reached, e.Err)
}

// Unwrap returns Err.
func (e *AudienceError) Unwrap() error { return e.Err }

// The type "reached" counts the parts of an audience, and their users, for which the service has returned a response.
type reached struct {
	parts int
	users uint64
}

// The method "add" records that a response about the given number of users has arrived.
func (r *reached) add(users int) {
	r.parts++
	r.users += uint64(users)
}

// The method "fault" returns an AudienceError with the error err, and with the numbers of parts and users that have a
// result. If err is nil, fault returns nil.
func (p *Parts) fault(r reached, err error) error {
	if err == nil {
		return nil
	}
	return &AudienceError{Generation: p.Generation, Parts: len(p.List), Done: r.parts, Users: p.Users, Asked: r.users,
		Err: err}
}
