package wire

import (
	"cmp"
	"context"
	"errors"
	"time"

	"capper/client/api"
	"capper/internal/audience"
	"capper/internal/capping"
	"capper/internal/ids"
	"capper/internal/segments"
	"capper/internal/share"
)

// overloadedFor is the time that a caller should wait before a retry, after the server refused a call because of
// overload.
const overloadedFor = time.Second

// A Finder finds or counts the users that match an audience query. A Finder is safe for concurrent use.
type Finder struct {
	Pin    Pin
	engine *audience.Engine
	turns  turns
}

// NewFinder returns a Finder that gets segments generations (published versions) from the argument "pin", a function.
func NewFinder(pin Pin) *Finder {
	return &Finder{Pin: pin, engine: audience.NewEngine(0)}
}

// The type "found" holds a parsed audience expression, together with the sample, the part and the cursor of the
// audience query.
type found struct {
	*audience.Audience
	query audience.Query
	plain string // expression without configured names; "": it had no configured names
}

// The method Snapshot returns the segments generation (published version) that an audience query names, and keeps the
// generation in memory for later calls.
func (f *Finder) Snapshot(q *api.AudienceQuery) (*segments.Snapshot, error) {
	if q.Cursor == "" {
		return f.Pin.Pinned("generation", q.Generation)
	}
	cursor, err := audience.ParseCursor(q.Cursor)
	if err != nil {
		return nil, Invalid("cursor", "%s", err)
	}
	if q.Generation != "" && q.Generation != cursor.Generation {
		return nil, Invalid("generation", "the cursor belongs to generation %s: leave the field generation out",
			Clip([]byte(cursor.Generation)))
	}
	return f.Pin.Generation("cursor", cursor.Generation)
}

// The method find parses an audience query, and looks up the query's segments and sets. The audience query may use the
// named expressions of the configuration.
func (f *Finder) find(s *segments.Snapshot, q *api.AudienceQuery, named *audience.Named) (*found, error) {
	e, err := audience.Parse(q.Audience)
	if err == nil {
		e, err = e.With(named)
	}
	if err != nil {
		return nil, evaluationFailure(err)
	}
	a, err := f.engine.Bind(e, s)
	if err != nil {
		return nil, evaluationFailure(err)
	}
	of := &found{Audience: a, plain: e.Plain()}
	if q.Part != nil {
		of.query.Part = audience.Part{Of: q.Part.Of, Index: q.Part.Index}
	}
	if q.Cursor != "" {
		of.query.Cursor, err = audience.ParseCursor(q.Cursor)
	}
	if q.Sample != nil && err == nil {
		var sample share.Share
		sample, err = share.NewCell(share.Sample, q.Sample.From, cmp.Or(q.Sample.Percent, q.Sample.To), q.Sample.Salt)
		of.query.Sample = &sample
	}
	return of, err
}

// Search holds the arguments of Find.
type Search struct {
	Holder  string
	Named   *audience.Named // named expressions that the query may use
	Most    int             // maximum number of users if the query sets no maximum
	Names   bool            // the HTTP response lists the users by id
	Reserve func(bytes int64) error
}

// Find evaluates the query of the Audience "a", and stores the matching users in "a" in ascending order. If the query
// sets no "max_users", and more users match than Find may return, Find returns an error with the number of matching
// users. If the response lists users whose ids are not dense (not 32-bit numbers), Find reserves memory for these ids
// and stores them in the Audience.
func (f *Finder) Find(ctx context.Context, a *Audience, search *Search) error {
	s, err := f.Snapshot(a.Query)
	if err != nil {
		return err
	}
	if search.Names && !s.HasNames() {
		return noNames(s, "audience", "send user_ids")
	}
	of, err := f.find(s, a.Query, search.Named)
	if err != nil {
		return err
	}
	page, err := f.page(ctx, of, a.Query, search)
	if err != nil {
		return err
	}
	a.Users, a.Taken = s.AppendUsers(make([]capping.UserID, 0, len(page.Users)), page.Users), takenOf(s, page)
	if !search.Names || s.IDs().Kind() == ids.Dense {
		return nil
	}
	if err := search.Reserve(givenSize(s, page.Users)); err != nil {
		return err
	}
	a.Form = InPacked
	if s.IDs().Width() == 0 {
		a.Form = InLists
	}
	a.Given, err = givenOf(s, page.Users)
	return err
}

// The method page waits until the client may evaluate an audience expression, and then evaluates the query.
func (f *Finder) page(ctx context.Context, of *found, q *api.AudienceQuery, search *Search) (*audience.Page, error) {
	end, err := f.turns.take(ctx, search.Holder)
	if err != nil {
		return nil, evaluationFailure(err)
	}
	defer end()
	page, err := of.Page(ctx, of.query, cmp.Or(q.MaxUsers, search.Most))
	switch {
	case err != nil:
		return nil, evaluationFailure(err)
	case page.Next != nil && q.MaxUsers == 0:
		return nil, of.tooMany(ctx, search.Most)
	}
	return page, nil
}

func takenOf(s *segments.Snapshot, page *audience.Page) *api.AudienceTaken {
	taken := &api.AudienceTaken{Generation: s.Generation(), Users: len(page.Users)}
	if page.Next != nil {
		taken.Next = page.Next.String()
	}
	if p := page.NextPart; p != nil {
		taken.NextPart = &api.Part{Of: p.Of, Index: p.Index}
	}
	return taken
}

// tooMany returns the error for an audience with more users than allowed. The method tooMany states the number of
// matching users and suggests smaller requests.
func (of *found) tooMany(ctx context.Context, most int) error {
	users, err := of.Count(ctx, of.query)
	if err != nil {
		return evaluationFailure(err)
	}
	parts := max(of.query.Part.Of, 1) * int((users+uint64(most)-1)/uint64(most))
	if of.query.Part.Of == 0 && of.query.Cursor == nil && parts <= api.MaxParts {
		return FieldFailure(api.CodeTooLarge, "audience",
			"%d users are selected, but one call covers at most %d: set max_users to at most %d and follow "+
				"audience.next of each response; or request at least %d parts one by one",
			users, most, most, parts)
	}
	return FieldFailure(api.CodeTooLarge, "audience",
		"%d users are selected, but one call covers at most %d: "+
			"set max_users to at most %d and follow audience.next of each response",
		users, most, most)
}

// Counting an audience has a price, which the server takes from the client's rate limit. The price of a count is the
// number of users in the segments generation, divided by usersBroken, usersSampled or usersCounted. A query with a
// sample has the highest price, because the evaluation hashes each user of the audience.
const (
	usersBroken  = 1000   // divisor for counts by segment and set
	usersSampled = 200    // divisor for counts of a sample
	usersCounted = 20_000 // divisor for total counts
)

// priceOf returns the price, in users, that the server takes from the client's rate limit for counting the users of a
// query.
func priceOf(s *segments.Snapshot, q *api.AudienceQuery, total bool) int {
	var users uint64
	for _, size := range s.Segments() {
		users += size.Cardinality
	}
	for _, size := range s.Sets() {
		users = max(users, size.Cardinality)
	}
	each := uint64(usersBroken)
	switch {
	case q.Sample != nil:
		each = usersSampled
	case total:
		each = usersCounted
	}
	return int(users/each) + 1
}

// The type Count holds the arguments of a call that counts the users of an audience query.
type Count struct {
	Query *api.AudienceQuery
	Named *audience.Named       // named expressions that the query may use
	Total bool                  // true: only the total; false: also counts by segment and set
	Pay   func(price int) error // charges the price, before the count starts
}

// The method Count counts the users who match an audience query.
func (f *Finder) Count(ctx context.Context, holder string, r *Count) (*api.AudienceCount, error) {
	s, err := f.Snapshot(r.Query)
	if err != nil {
		return nil, err
	}
	of, err := f.find(s, r.Query, r.Named)
	if err != nil {
		return nil, err
	}
	if err := r.Pay(priceOf(s, r.Query, r.Total)); err != nil {
		return nil, err
	}
	end, err := f.turns.take(ctx, holder)
	if err != nil {
		return nil, evaluationFailure(err)
	}
	defer end()
	counts := &api.AudienceCount{
		Generation: s.Generation(), Expression: of.plain, Segments: map[string]uint64{}, Sets: map[string]uint64{},
	}
	if r.Total {
		counts.Users, err = of.Count(ctx, of.query)
	} else {
		err = of.breakdown(ctx, counts)
	}
	if err != nil {
		return nil, evaluationFailure(err)
	}
	return counts, nil
}

func (of *found) breakdown(ctx context.Context, to *api.AudienceCount) error {
	counts, err := of.Breakdown(ctx, of.query)
	if err == nil {
		to.Users, to.Segments, to.Sets = counts.Users, counts.Segments, counts.Sets
	}
	return err
}

// evaluationFailure converts an error that occurred while evaluating an audience expression to a failure for the
// caller.
func evaluationFailure(err error) error {
	var refused *Failure
	switch {
	case errors.As(err, &refused):
		return refused
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return late(err)
	case errors.Is(err, audience.ErrOtherQuery):
		return Invalid("cursor", "the cursor belongs to another query: expression, sample, part and "+
			"generation must be the same in every call")
	}
	f := Invalid("audience", "%s", err)
	f.Column, _ = audience.Position(err)
	return f
}
