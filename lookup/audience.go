package lookup

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"capper/internal/audience"
	"capper/internal/share"
)

// Audience is the users of an expression in one generation. It is immutable, and safe
// for concurrent use.
type Audience struct {
	of    *audience.Audience
	query audience.Query
}

// Audience finds the users of an expression: names of segments and sets, & (both), |
// (either), - (the first without the second, with a blank before it) and parentheses, such as
// active - vip - country/my; docs/audiences.md has the language. The error is an *ExpressionError.
func (g *Generation) Audience(expression string) (*Audience, error) {
	e, err := audience.Parse(expression)
	if err == nil {
		e, err = e.With(g.named)
	}
	var a *audience.Audience
	if err == nil {
		a, err = g.engine.Bind(e, g.snapshot)
	}
	if err != nil {
		return nil, newExpressionError(expression, err)
	}
	return &Audience{of: a}, nil
}

// ExpressionError says what is wrong with an expression.
type ExpressionError struct {
	Expression string
	Column     int    // where, in characters from 1; 0: in general
	Nearest    string // a name that there is, where one was unknown; "": none is near
	err        error
}

func (e *ExpressionError) Error() string {
	return fmt.Sprintf("lookup: audience %q: %v", e.Expression, e.err)
}

func newExpressionError(expression string, err error) *ExpressionError {
	e := &ExpressionError{Expression: expression, err: err}
	var syntax *audience.SyntaxError
	var bound *audience.BoundError
	var unknown *audience.UnknownError
	var ambiguous *audience.AmbiguousError
	switch {
	case errors.As(err, &syntax):
		e.Column = syntax.Column
	case errors.As(err, &bound):
		e.Column = bound.Column
	case errors.As(err, &unknown):
		e.Column, e.Nearest = unknown.Column, unknown.Nearest
	case errors.As(err, &ambiguous):
		e.Column = ambiguous.Column
	}
	return e
}

// Generation names the generation that it is of.
func (a *Audience) Generation() string { return a.of.Generation() }

// Sample is a share of the audience, of a percentage above 0 up to 100: always the same
// users for a salt, on every machine and in every generation. Another salt is another sample.
func (a *Audience) Sample(percent float64, salt string) (*Audience, error) {
	sample, err := share.New(share.Sample, percent, salt)
	if err != nil {
		return nil, fmt.Errorf("lookup: sample: %w", err)
	}
	narrowed := *a
	narrowed.query.Sample = &sample
	return &narrowed, nil
}

// Cell is a sample that begins elsewhere on the scale of its salt: the users between two percentages,
// of 0 up to 100. Cells of one salt that do not overlap share no user, and those that cover 0 to 100
// are the whole audience. Sample(p, salt) is Cell(0, p, salt).
func (a *Audience) Cell(from, to float64, salt string) (*Audience, error) {
	sample, err := share.NewCell(share.Sample, from, to, salt)
	if err != nil {
		return nil, fmt.Errorf("lookup: range of users: %w", err)
	}
	narrowed := *a
	narrowed.query.Sample = &sample
	return &narrowed, nil
}

// Part is one of several parts, from 0, of about the same size. They share nobody, and
// together are the audience. A part is taken before a sample, in whatever order they are asked for.
func (a *Audience) Part(index, of int) (*Audience, error) {
	switch {
	case of < 1 || of > audience.MaxParts:
		return nil, fmt.Errorf("lookup: part %d of %d: the number of parts must be 1 to %d",
			index, of, audience.MaxParts)
	case index < 0 || index >= of:
		return nil, fmt.Errorf("lookup: part %d of %d: the part must be 0 to %d", index, of, of-1)
	}
	narrowed := *a
	narrowed.query.Part = audience.Part{Of: of, Index: index}
	return &narrowed, nil
}

// Count is how many users there are. The error is that of ctx.
func (a *Audience) Count(ctx context.Context) (uint64, error) { return a.of.Count(ctx, a.query) }

// Users yields the users in ascending order, up to n of them at a time, n being above 0.
// The slices are the caller's. An error, which is that of ctx, is the last that is yielded.
func (a *Audience) Users(ctx context.Context, n int) iter.Seq2[[]uint32, error] {
	return func(yield func([]uint32, error) bool) {
		query := a.query
		for {
			page, err := a.of.Page(ctx, query, max(n, 1))
			if err != nil {
				yield(nil, err)
				return
			}
			if len(page.Users) > 0 && !yield(page.Users, nil) || page.Next == nil {
				return
			}
			query.Cursor = page.Next
		}
	}
}

// Bitmap is the users as a serialized roaring bitmap in its portable format: what the
// service takes as users_bitmap, in base64. The error is that of ctx.
func (a *Audience) Bitmap(ctx context.Context) ([]byte, error) {
	b, err := a.of.Bitmap(ctx, a.query)
	if err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
