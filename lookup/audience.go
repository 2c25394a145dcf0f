package lookup

import (
	"context"
	"fmt"
	"iter"

	"capper/internal/audience"
	"capper/internal/share"
)

// An Audience represents the users that an expression selects in one generation (published version) of the segments and
// sets. An Audience is immutable and safe for concurrent use.
type Audience struct {
	of    *audience.Audience
	query audience.Query
}

// The method Audience parses an expression and returns the audience of the users that the expression selects. An
// expression combines names of segments and sets with "&" (in both), "|" (in either), "-" (in the first only) and
// parentheses. A "-" must follow a blank. An example of an expression is "active - vip - country/my". The page
// docs/audiences.md describes the language of audience expressions. The error of Audience is an *ExpressionError.
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

// ExpressionError reports a fault in an audience expression.
type ExpressionError struct {
	Expression string
	Column     int    // position in characters, from 1; 0: the whole expression
	Nearest    string // an existing name that is similar to the unknown name, or ""
	err        error
}

func (e *ExpressionError) Error() string {
	return fmt.Sprintf("lookup: audience %q: %v", e.Expression, e.err)
}

func newExpressionError(expression string, err error) *ExpressionError {
	column, nearest := audience.Position(err)
	return &ExpressionError{Expression: expression, Column: column, Nearest: nearest, err: err}
}

// The method Generation returns the name of the generation (published version) in which the audience selects users.
func (a *Audience) Generation() string { return a.of.Generation() }

// The method Sample returns a random percentage of the audience. The argument "percent" must be above 0 and at most
// 100. Calls of Sample with equal percentages and salts select the same users, on every machine and in every
// generation. With another salt, Sample selects other users.
func (a *Audience) Sample(percent float64, salt string) (*Audience, error) {
	sample, err := share.New(share.Sample, percent, salt)
	if err != nil {
		return nil, fmt.Errorf("lookup: sample: %w", err)
	}
	narrowed := *a
	narrowed.query.Sample = &sample
	return &narrowed, nil
}

// The method Cell returns a random sample of the audience, for example for one arm of a test. A hash of the salt and
// the id gives each user a number from 0 to 100, and Cell selects the users between two numbers. If the ranges of two
// cells with the same salt do not overlap, these cells have no user in common. Cells whose ranges cover 0 to 100
// contain the whole audience. Sample(p, salt) equals Cell(0, p, salt).
func (a *Audience) Cell(from, to float64, salt string) (*Audience, error) {
	sample, err := share.NewCell(share.Sample, from, to, salt)
	if err != nil {
		return nil, fmt.Errorf("lookup: range of users: %w", err)
	}
	narrowed := *a
	narrowed.query.Sample = &sample
	return &narrowed, nil
}

// The method Part returns one of several parts of the audience. All parts have about the same size. The argument
// "index" counts from 0. The parts of an audience have no user in common and together contain the whole audience. The
// order of the calls of Sample and Part has no effect, because Part always divides the whole audience before the sample
// applies.
func (a *Audience) Part(index, of int) (*Audience, error) {
	switch {
	case of < 1 || of > audience.MaxParts:
		return nil, fmt.Errorf("lookup: part %d of %d: the number of parts must be 1 to %d",
			index, of, audience.MaxParts)
	case index < 0 || index >= of:
		return nil, fmt.Errorf("lookup: part %d of %d: the number of the part must be 0 to %d", index, of, of-1)
	}
	narrowed := *a
	narrowed.query.Part = audience.Part{Of: of, Index: index}
	return &narrowed, nil
}

// The method Count returns the number of users in the audience. The only error of Count is the error of ctx.
func (a *Audience) Count(ctx context.Context) (uint64, error) { return a.of.Count(ctx, a.query) }

// Users yields the users of the audience in ascending order, in slices of at most n users. The argument n must be above
// 0. The caller owns the slices. If ctx ends, Users yields the error of ctx and stops.
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

// The method Bitmap returns the users of the audience as a bitmap in the portable roaring format. The service accepts
// such a bitmap in base64 as users_bitmap. The only error of Bitmap is the error of ctx.
func (a *Audience) Bitmap(ctx context.Context) ([]byte, error) {
	b, err := a.of.Bitmap(ctx, a.query)
	if err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
