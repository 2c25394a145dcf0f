package lookup

import (
	"cmp"
	"context"
	"errors"
	"time"

	"capper/client/api"
	"capper/internal/audience"
	"capper/internal/segments"
	"capper/internal/server/failure"
	"capper/internal/share"
)

// overloadedFor is after how long a caller tries again.
const overloadedFor = time.Second

// Finder finds the users of audiences. It is safe for concurrent use.
type Finder struct {
	Pin    Pin
	named  func() *audience.Named
	engine *audience.Engine
	turns  turns
}

// NewFinder is a finder in the generations of pin. named are the expressions of the
// configuration in force; it is called by many goroutines.
func NewFinder(pin Pin, named func() *audience.Named) *Finder {
	return &Finder{Pin: pin, named: named, engine: audience.NewEngine(0)}
}

// found is an audience and the part of it that a call asks for.
type found struct {
	*audience.Audience
	query audience.Query
}

// Snapshot is the generation that a query is of, which is pinned.
func (f *Finder) Snapshot(q *api.AudienceQuery) (*segments.Snapshot, error) {
	if q.Cursor == "" {
		return f.Pin.Pinned("generation", q.Generation)
	}
	cursor, err := audience.ParseCursor(q.Cursor)
	if err != nil {
		return nil, failure.Invalid("cursor", "it is %s", err)
	}
	if q.Generation != "" && q.Generation != cursor.Generation {
		return nil, failure.Invalid("generation", "the cursor is of generation %s: leave the field out", failure.Clip([]byte(cursor.Generation)))
	}
	return f.Pin.Generation("cursor", cursor.Generation)
}

// find reads a query.
func (f *Finder) find(s *segments.Snapshot, q *api.AudienceQuery) (*found, error) {
	e, err := audience.Parse(q.Audience)
	if err == nil {
		e, err = e.With(f.named())
	}
	if err != nil {
		return nil, told(err)
	}
	a, err := f.engine.Bind(e, s)
	if err != nil {
		return nil, told(err)
	}
	of := &found{Audience: a}
	if q.Part != nil {
		of.query.Part = audience.Part{Of: q.Part.Of, Index: q.Part.Index}
	}
	if q.Cursor != "" {
		of.query.Cursor, err = audience.ParseCursor(q.Cursor)
	}
	if q.Sample != nil && err == nil {
		var sample share.Share
		sample, err = share.New(share.Sample, q.Sample.Percent, q.Sample.Salt)
		of.query.Sample = &sample
	}
	return of, err
}

// Users are the users of a query, ascending, at most so many; the error says how many
// there are where they are more and the query does not say how many it wants.
func (f *Finder) Users(ctx context.Context, holder string, q *api.AudienceQuery, most int) ([]uint32, *api.AudienceTaken, error) {
	s, err := f.Snapshot(q)
	if err != nil {
		return nil, nil, err
	}
	of, err := f.find(s, q)
	if err != nil {
		return nil, nil, err
	}
	end, err := f.turns.take(ctx, holder)
	if err != nil {
		return nil, nil, told(err)
	}
	defer end()
	page, err := of.Page(ctx, of.query, cmp.Or(q.MaxUsers, most))
	switch {
	case err != nil:
		return nil, nil, told(err)
	case page.Next != nil && q.MaxUsers == 0:
		return nil, nil, of.tooMany(ctx, most)
	}
	return page.Users, takenOf(s, page), nil
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

// tooMany says how many users there are, and which ways lead on.
func (of *found) tooMany(ctx context.Context, most int) error {
	users, err := of.Count(ctx, of.query)
	if err != nil {
		return told(err)
	}
	parts := max(of.query.Part.Of, 1) * int((users+uint64(most)-1)/uint64(most))
	if of.query.Part.Of == 0 && of.query.Cursor == nil && parts <= api.MaxParts {
		return failure.OfField(api.CodeTooLarge, "audience",
			"%d users, at most %d are taken in one call: set max_users, to at most %d, and follow audience.next of each answer; or ask for the parts of at least %d, one by one",
			users, most, most, parts)
	}
	return failure.OfField(api.CodeTooLarge, "audience",
		"%d users, at most %d are taken in one call: set max_users, to at most %d, and follow audience.next of each answer", users, most, most)
}

// Count counts the users of a query by segment and set.
func (f *Finder) Count(ctx context.Context, holder string, q *api.AudienceQuery) (*api.AudienceCount, error) {
	s, err := f.Snapshot(q)
	if err != nil {
		return nil, err
	}
	of, err := f.find(s, q)
	if err != nil {
		return nil, err
	}
	end, err := f.turns.take(ctx, holder)
	if err != nil {
		return nil, told(err)
	}
	defer end()
	counts, err := of.Breakdown(ctx, of.query)
	if err != nil {
		return nil, told(err)
	}
	return &api.AudienceCount{Generation: s.Generation(), Users: counts.Users, Segments: counts.Segments, Sets: counts.Sets}, nil
}

// told is an error of working out an audience as a caller is told it.
func told(err error) error {
	var refused *failure.Failure
	var syntax *audience.SyntaxError
	var bound *audience.BoundError
	var unknown *audience.UnknownError
	var ambiguous *audience.AmbiguousError
	switch {
	case errors.As(err, &refused):
		return refused
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return late(err)
	case errors.Is(err, audience.ErrOtherQuery):
		return failure.Invalid("cursor", "it is of another query: expression, sample, part and generation must be those of the call that gave it")
	}
	f := failure.Invalid("audience", "%s", err)
	switch {
	case errors.As(err, &syntax):
		f.Column = syntax.Column
	case errors.As(err, &bound):
		f.Column = bound.Column
	case errors.As(err, &unknown):
		f.Column = unknown.Column
	case errors.As(err, &ambiguous):
		f.Column = ambiguous.Column
	}
	return f
}
