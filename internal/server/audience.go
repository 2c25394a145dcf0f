package server

import (
	"context"
	"slices"

	"capper/client/api"
	"capper/internal/capping"
	"capper/internal/server/wire"
)

// countAudience serves POST /v1/audience/count.
func (s *Server) countAudience(c *call) error {
	body, err := s.smallBodies.Read(c.w, c.r, c.holder)
	if err != nil {
		return err
	}
	defer body.Close()
	r, err := wire.DecodeCount(body.Data, s.decodeBounds(body))
	if err != nil {
		return err
	}
	basis := s.basisOf(&r.Query)
	channel, err := previewChannel(r, basis.Policy())
	if err != nil {
		return err
	}
	ctx, cancel := s.findContext(c)
	defer cancel()
	counts, err := s.finder.Count(ctx, c.holder, &wire.Count{
		Query: &r.Query, Named: s.audiences(basis.Policy()), Total: r.Total,
		Pay: func(price int) error { return s.charge(c, "audience", price) },
	})
	if err != nil {
		return err
	}
	if r.Preview {
		if counts.Preview, err = s.preview(c, body, r, counts,
			&capping.Send{Basis: basis, Channel: channel}); err != nil {
			return err
		}
		counts.PreviewGeneration, counts.ConfigVersion = basis.Generation(), basis.Policy().Version
	}
	return writeJSON(c.w, counts)
}

// previewChannel returns the channel for which a request to count an audience also asks for a preview. If the request
// asks for no preview, previewChannel returns 0.
func previewChannel(r *wire.CountRequest, policy *capping.Policy) (capping.Channel, error) {
	if !r.Preview {
		return 0, nil
	}
	return wire.SendChannel(r.Channel, policy)
}

// previewBatch is the number of users whom a preview (decisions that record nothing) decides in one store call.
const previewBatch = 100_000

// basisOf returns the segments generation (published version) and the policy for all decisions of a call. If an
// audience query names no generation, basisOf writes the name of the returned generation into the query. The service
// then selects the users, and decides about them, with one generation. The argument q is nil for a call without an
// audience query.
func (s *Server) basisOf(q *api.AudienceQuery) *capping.Basis {
	basis := s.capper.Basis()
	if q == nil || q.Generation != "" || q.Cursor != "" {
		return basis
	}
	if _, err := s.finder.Pin(basis.Generation()); err == nil {
		q.Generation = basis.Generation()
	}
	return basis // without a pin the finder reports the error
}

// The method preview makes the decisions that a filter call would make now for the counted users of an audience, and
// records no sends.
func (s *Server) preview(
	c *call, b *Body, r *wire.CountRequest, counts *api.AudienceCount, send *capping.Send,
) (*api.Summary, error) {
	if most := uint64(s.bounds.BitmapUsers); counts.Users > most {
		return nil, wire.FieldFailure(api.CodeTooLarge, "audience", "%d users are selected, "+
			"but one preview covers at most %d: request a sample, or one of at least %d parts",
			counts.Users, most, (counts.Users+most-1)/most)
	}
	r.Query.Generation = counts.Generation
	a := &wire.Audience{Query: &r.Query, Form: wire.InBitmaps}
	if err := s.findUsers(c, b, a, send.Basis.Policy(), false); err != nil {
		return nil, err
	}
	p, err := s.enter(c, a, 1024)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	ctx, cancel := s.callContext(c, len(a.Users))
	defer cancel()
	return s.decide(ctx, send, a.Users, capping.InstantOf(s.clock())), nil
}

// The method decide makes the decisions that a filter call would make for the users at the given time, and records no
// sends.
func (s *Server) decide(
	ctx context.Context, send *capping.Send, users []capping.UserID, at capping.Instant,
) *api.Summary {
	total := wire.NewSummary()
	for batch := range slices.Chunk(users, previewBatch) {
		d := s.capper.Filter(ctx, &capping.Send{Basis: send.Basis, Channel: send.Channel, Users: batch, Enforce: true,
			At: at})
		total.Add(wire.SummaryOf(wire.Summarize(d), d.Names))
	}
	return total
}

// The method forecast serves POST /v1/forecast.
func (s *Server) forecast(c *call) error {
	body, err := s.bodies.Read(c.w, c.r, c.holder)
	if err != nil {
		return err
	}
	defer body.Close()
	r, err := wire.DecodeForecast(body.Data, s.decodeBounds(body))
	if err != nil {
		return err
	}
	basis := s.basisOf(r.Query)
	channel, err := wire.SendChannel(r.Channel, basis.Policy())
	if err != nil {
		return err
	}
	times, err := wire.ForecastTimes(r.At, s.clock())
	if err != nil {
		return err
	}
	if err := s.findUsers(c, body, &r.Audience, basis.Policy(), false); err != nil {
		return err
	}
	body.KeepUsers(r.Bytes())
	decided := len(r.Users) * len(times)
	if most := s.bounds.BitmapUsers; decided > most {
		return wire.FieldFailure(api.CodeTooLarge, r.Field(), "%d users at %d times: "+
			"one call makes at most %d decisions: request fewer times, or a sample", len(r.Users), len(times), most)
	}
	if r.Used {
		decided += len(r.Users)
	}
	p, err := s.budgets.Enter(c.holder, max(len(r.Users), 1), forecastBytes*int64(len(times)+1))
	if err != nil {
		return err
	}
	defer p.Close()
	if err := s.admit(c, r.Field(), max(decided, 1)); err != nil {
		return err
	}
	ctx, cancel := s.callContext(c, decided)
	defer cancel()
	return writeJSON(c.w, s.forecastOf(ctx, &capping.Send{Basis: basis, Channel: channel}, r, times))
}

// forecastBytes is the approximate size in bytes of one forecast time in the HTTP response.
const forecastBytes = 16 << 10

func (s *Server) forecastOf(
	ctx context.Context, send *capping.Send, r *wire.ForecastRequest, times []capping.Instant,
) *api.Forecast {
	answer := &api.Forecast{
		Users: len(r.Users), Audience: r.Taken,
		Generation: send.Basis.Generation(), ConfigVersion: send.Basis.Policy().Version,
	}
	for _, at := range times {
		answer.Forecasts = append(answer.Forecasts,
			api.ForecastPoint{At: at.Time(), Summary: *s.decide(ctx, send, r.Users, at)})
	}
	if r.Used {
		answer.Used = s.used(ctx, send, r.Users)
	}
	return answer
}

// The method "used" counts, for each limit, the users by their number of sends that count towards the limit now: 0, 1,
// or 2 and more.
func (s *Server) used(ctx context.Context, send *capping.Send, users []capping.UserID) []api.LimitUse {
	uses, now := capping.NewUses(send.Basis, send.Channel), capping.InstantOf(s.clock())
	for batch := range slices.Chunk(users, previewBatch) {
		uses.Add(s.capper.Filter(ctx, &capping.Send{Basis: uses.Basis(), Channel: send.Channel, Users: batch,
			Enforce: true, At: now}))
	}
	return wire.LimitUses(uses.All())
}
