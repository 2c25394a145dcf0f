package server

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"capper/client/api"
	"capper/internal/capping"
	"capper/internal/server/admission"
	"capper/internal/server/body"
	"capper/internal/server/decode"
	"capper/internal/server/failure"
)

// enter admits a call of the audience: the bounds of all calls, and the
// client's rate. answer is about the most bytes that the answer takes.
func (s *Server) enter(c *call, a *decode.Audience, answer int64) (*admission.Place, error) {
	place, err := s.budgets.Enter(c.holder, len(a.Users), answer)
	if err != nil {
		return nil, err
	}
	if err := s.admit(c, a.Field(), len(a.Users)); err != nil {
		place.Close()
		return nil, err
	}
	return place, nil
}

// decodeBounds are those of the request in a body.
func (s *Server) decodeBounds(b *body.Body) decode.Bounds {
	return decode.Bounds{IDs: s.bounds.JSONUsers, Bitmap: s.bounds.BitmapUsers, Reserve: b.Reserve}
}

// writeAnswer writes an answer that was made in the place's buffer.
func (s *Server) writeAnswer(c *call, p *admission.Place, out []byte) {
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
		return failure.OfField(api.CodeTooLarge, field, "%d users, more than this client may have decided at once (its burst): split the batch into at most %d users",
			users, rate.Largest())
	}
	result, err := s.limiter.Take(c.r.Context(), c.Client, rate, users)
	if err != nil {
		return fmt.Errorf("rate of client %q: %w", c.Client, err)
	}
	writeRate(c.w.Header(), rate, result)
	if !result.Allowed {
		f := failure.New(api.CodeRateLimited, "%d users are beyond the rate of this client (%d users per second, bursts of %d): %d would pass now",
			users, rate.UsersPerSecond, rate.Largest(), result.Remaining)
		f.RetryAfter = max(result.RetryAfter, time.Millisecond)
		return f
	}
	return nil
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
