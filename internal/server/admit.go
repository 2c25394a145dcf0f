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
	"capper/internal/trace"
)

// The method enter admits a call about users to the server. The method enter reserves users and memory in the budgets,
// and charges the users to the client's rate limit. The argument "answer" is the approximate maximum size of the HTTP
// response in bytes.
func (s *Server) enter(c *call, a *wire.Audience, answer int64) (*gate.Place, error) {
	_, part := trace.Start(c.ctx, "admit")
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

// findUsers evaluates an audience expression and stores the matching users in the audience. The argument "policy" holds
// the definitions of the named expressions. The method findUsers charges the memory of the matching users to the
// request body b.
//
// The argument "names" of findUsers says whether the HTTP response will list the users.
func (s *Server) findUsers(c *call, b *Body, a *wire.Audience, policy *capping.Policy, names bool) error {
	if a.Query == nil {
		return nil
	}
	if err := b.Reserve(wire.UserBytes * int64(cmp.Or(a.Query.MaxUsers, s.bounds.BitmapUsers))); err != nil {
		return err
	}
	_, part := trace.Start(c.ctx, "find audience")
	defer part.End()
	ctx, cancel := s.findContext(c)
	defer cancel()
	return s.finder.Find(ctx, a, &wire.Search{Holder: c.holder, Named: s.audiences(policy),
		Most: s.bounds.BitmapUsers, Names: names, Reserve: b.Reserve})
}

// findContext returns a context with the time limit of a call, for the evaluation of an audience expression.
func (s *Server) findContext(c *call) (context.Context, context.CancelFunc) {
	return context.WithTimeout(c.ctx, s.bounds.CallTimeout)
}

// decodeBounds returns the limits for decoding the request body b.
func (s *Server) decodeBounds(b *Body) wire.Bounds {
	return wire.Bounds{
		IDs: s.bounds.JSONUsers, Bitmap: s.bounds.BitmapUsers, Reserve: b.Reserve,
		NeedsChannel: s.capper.Policy().RequireChannel, Scheme: s.ids,
	}
}

// writeAnswer ends the call's use of the budget for users, and then sends the encoded response body to the caller.
func (s *Server) writeAnswer(c *call, p *gate.Place, out []byte) {
	_, part := trace.Start(c.ctx, "write answer")
	defer part.End()
	trace.SetInt(part, "http.response.body.size", len(out))
	p.FreeUsers(out)
	writeHeader(c.w, http.StatusOK, len(out))
	p.Write(c.w, s.bounds.MinRate)
}

// The method admit charges the users of a call to the client's rate limit, and writes the remaining amount to the
// response headers.
func (s *Server) admit(c *call, field string, users int) error {
	rate := s.access.Load().RateOf(c.Client)
	if rate.UsersPerSecond == 0 {
		return nil
	}
	if users > rate.Largest() {
		split := "split the batch into parts of at most %d users"
		if field == "audience" {
			split = "set max_users to at most %d, and follow audience.next of each response"
		}
		return wire.FieldFailure(api.CodeTooLarge, field, "%d users exceed the burst of this client (maximum for one "+
			"call): "+split,
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

// The method charge takes a price, in users, from the client's rate limit, for work that is not proportional to the
// users of a call. The price that charge() takes is at most the client's burst, so that every client can afford an
// expensive call.
func (s *Server) charge(c *call, field string, price int) error {
	if rate := s.access.Load().RateOf(c.Client); rate.UsersPerSecond > 0 {
		price = min(price, rate.Largest())
	}
	return s.admit(c, field, price)
}

// writeRate sets the response headers of the rate limit in their usual spelling, which http.Header.Set would change.
func writeRate(h http.Header, rate capping.Rate, result capping.RateState) {
	for _, prefix := range []string{"RateLimit-", "X-RateLimit-"} {
		h[prefix+"Limit"] = []string{strconv.Itoa(rate.Largest())}
		h[prefix+"Remaining"] = []string{strconv.Itoa(result.Remaining)}
		h[prefix+"Reset"] = []string{wholeSeconds(result.ResetAfter)}
	}
}
