package server

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"capper/client/api"
	"capper/internal/capping"
	"capper/internal/server/gate"
	"capper/internal/server/wire"
)

// enter admits a call of the audience: the bounds of all calls, and the
// client's rate. answer is about the most bytes that the answer takes.
func (s *Server) enter(c *call, a *wire.Audience, answer int64) (*gate.Place, error) {
	part := c.span.Part("admit")
	defer part.End()
	users := max(len(a.Users), 1) // an audience may be empty
	place, err := s.budgets.Enter(c.holder, users, answer)
	if err != nil {
		return nil, err
	}
	if err := s.admit(c, a.Field(), users); err != nil {
		place.Close()
		return nil, err
	}
	return place, nil
}

// findUsers finds the users of an audience that was given as an expression, and says in the
// audience whom it took. Its names are those of the configuration that the policy is of. b holds
// their memory.
func (s *Server) findUsers(c *call, b *Body, a *wire.Audience, policy *capping.Policy) error {
	if a.Query == nil {
		return nil
	}
	if err := b.Reserve(4 * int64(cmp.Or(a.Query.MaxUsers, s.bounds.BitmapUsers))); err != nil {
		return err
	}
	part := c.span.Part("find audience")
	defer part.End()
	ctx, cancel := s.findContext(c)
	defer cancel()
	users, taken, err := s.finder.Users(ctx, c.holder, a.Query, s.audiences(policy), s.bounds.BitmapUsers)
	a.Users, a.Taken = users, taken
	return err
}

// findContext bounds how long an audience is worked out: no longer than the caller waits.
func (s *Server) findContext(c *call) (context.Context, context.CancelFunc) {
	return context.WithTimeout(c.ctx, s.bounds.CallTimeout)
}

// decodeBounds are those of the request in a body.
func (s *Server) decodeBounds(b *Body) wire.Bounds {
	return wire.Bounds{
		IDs: s.bounds.JSONUsers, Bitmap: s.bounds.BitmapUsers, Reserve: b.Reserve,
		NeedsChannel: s.capper.Policy().RequireChannel,
	}
}

// writeAnswer writes an answer that was made in the place's buffer.
func (s *Server) writeAnswer(c *call, p *gate.Place, out []byte) {
	part := c.span.Part("write answer")
	defer part.End()
	part.Int("http.response.body.size", len(out))
	p.FreeUsers(out)
	writeHeader(c.w, http.StatusOK, len(out))
	p.Write(c.w, s.bounds.MinRate)
}

// admit takes the users from the client's budget, and says in headers what is
// left of it.
func (s *Server) admit(c *call, field string, users int) error {
	rate := s.access.Load().RateOf(c.Client)
	if rate.UsersPerSecond == 0 {
		return nil
	}
	if users > rate.Largest() {
		split := "split the batch into at most %d users"
		if field == "audience" {
			split = "set max_users to at most %d, and follow audience.next of each response"
		}
		return wire.FieldFailure(api.CodeTooLarge, field, "%d users exceed the burst of this client: "+split,
			users, rate.Largest())
	}
	result, err := s.limiter.Take(c.ctx, c.Client, rate, users)
	if err != nil {
		return fmt.Errorf("rate of client %q: %w", c.Client, err)
	}
	writeRate(c.w.Header(), rate, result)
	if !result.Allowed {
		f := wire.NewFailure(
			api.CodeRateLimited,
			"%d users exceed the rate of this client (%d users per second, bursts "+
				"of %d): %d would be accepted now",
			users,
			rate.UsersPerSecond,
			rate.Largest(),
			result.Remaining,
		)
		f.RetryAfter = max(result.RetryAfter, time.Millisecond)
		return f
	}
	return nil
}

// charge is admit for work whose price is not a number of users of the call: it takes no
// more than the client's burst, so that the call stays possible.
func (s *Server) charge(c *call, field string, price int) error {
	if rate := s.access.Load().RateOf(c.Client); rate.UsersPerSecond > 0 {
		price = min(price, rate.Largest())
	}
	return s.admit(c, field, price)
}

// writeRate sets the headers in the letters in which they are usually written,
// which Header.Set would change.
func writeRate(h http.Header, rate capping.Rate, result capping.RateState) {
	for _, prefix := range []string{"RateLimit-", "X-RateLimit-"} {
		h[prefix+"Limit"] = []string{strconv.Itoa(rate.Largest())}
		h[prefix+"Remaining"] = []string{strconv.Itoa(result.Remaining)}
		h[prefix+"Reset"] = []string{wholeSeconds(result.ResetAfter)}
	}
}
