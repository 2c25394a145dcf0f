package server

import (
	"context"
	"slices"

	"capper/client/api"
	"capper/internal/capping"
	"capper/internal/server/answer"
	"capper/internal/server/body"
	"capper/internal/server/decode"
	"capper/internal/server/failure"
)

// countAudience serves POST /v1/audience/count.
func (s *Server) countAudience(c *call) error {
	body, err := s.smallBodies.Read(c.w, c.r, c.holder)
	if err != nil {
		return err
	}
	defer body.Close()
	r, err := decode.Count(body.Data, s.decodeBounds(body))
	if err != nil {
		return err
	}
	channel, err := decode.ChannelOf(r.Channel, s.capper.Policy())
	if err != nil {
		return err
	}
	ctx, cancel := s.findContext(c)
	defer cancel()
	counts, err := s.finder.Count(ctx, c.holder, &r.Query)
	if err != nil {
		return err
	}
	if r.Preview {
		if counts.Preview, err = s.preview(c, body, r, counts, channel); err != nil {
			return err
		}
	}
	return writeJSON(c.w, counts)
}

// previewBatch is how many users of a preview are decided at a time.
const previewBatch = 100_000

// preview decides of those that were counted as a filter call on the channel would now,
// and records nothing.
func (s *Server) preview(c *call, b *body.Body, r *decode.CountRequest, counts *api.AudienceCount, channel capping.Channel) (*api.Summary, error) {
	if most := uint64(s.bounds.BitmapUsers); counts.Users > most {
		return nil, failure.OfField(api.CodeTooLarge, "audience", "%d users, at most %d are previewed at once: ask for a sample of them, or for one of at least %d parts",
			counts.Users, most, (counts.Users+most-1)/most)
	}
	r.Query.Generation = counts.Generation
	a := &decode.Audience{Query: &r.Query, Bitmap: true}
	if err := s.findUsers(c, b, a); err != nil {
		return nil, err
	}
	p, err := s.enter(c, a, 1024)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	ctx, cancel := s.callContext(c, len(a.Users))
	defer cancel()
	preview, _ := s.decide(ctx, channel, a.Users, capping.InstantOf(s.clock()))
	return preview, nil
}

// decide decides as a filter call on the channel would then, and records nothing. of is
// whose answer the last batch was.
func (s *Server) decide(ctx context.Context, channel capping.Channel, users []capping.UserID, at capping.Instant) (total *api.Summary, of *capping.Decisions) {
	total, of = answer.NewSummary(), &capping.Decisions{Generation: s.capper.Segments().Generation(), Policy: s.capper.Policy()}
	for batch := range slices.Chunk(users, previewBatch) {
		of = s.capper.Filter(ctx, &capping.Send{Channel: channel, Users: batch, Enforce: true, At: at})
		total.Add(answer.SummaryOf(answer.Summarize(of), of.Names))
	}
	return total, of
}

// forecast serves POST /v1/forecast.
func (s *Server) forecast(c *call) error {
	body, err := s.bodies.Read(c.w, c.r, c.holder)
	if err != nil {
		return err
	}
	defer body.Close()
	r, err := decode.Forecast(body.Data, s.decodeBounds(body))
	if err != nil {
		return err
	}
	channel, err := decode.ChannelOf(r.Channel, s.capper.Policy())
	if err != nil {
		return err
	}
	times, err := decode.ForecastTimes(r.At, s.clock())
	if err != nil {
		return err
	}
	if err := s.findUsers(c, body, &r.Audience); err != nil {
		return err
	}
	body.KeepUsers(len(r.Users))
	decided := len(r.Users) * len(times)
	if most := s.bounds.BitmapUsers; decided > most {
		return failure.OfField(api.CodeTooLarge, r.Field(), "%d users at %d times, %d are decided at once: ask for fewer times, or for a sample", len(r.Users), len(times), most)
	}
	p, err := s.budgets.Enter(c.holder, max(len(r.Users), 1), forecastBytes*int64(len(times)))
	if err != nil {
		return err
	}
	defer p.Close()
	if err := s.admit(c, r.Field(), max(decided, 1)); err != nil {
		return err
	}
	ctx, cancel := s.callContext(c, decided)
	defer cancel()
	return writeJSON(c.w, s.forecastOf(ctx, channel, r, times))
}

// forecastBytes is about what one time takes in the answer.
const forecastBytes = 16 << 10

func (s *Server) forecastOf(ctx context.Context, channel capping.Channel, r *decode.ForecastRequest, times []capping.Instant) *api.Forecast {
	told := &api.Forecast{Users: len(r.Users), Audience: r.Taken}
	for _, at := range times {
		total, of := s.decide(ctx, channel, r.Users, at)
		told.Generation, told.ConfigVersion = of.Generation, of.Policy.Version
		told.Forecasts = append(told.Forecasts, api.ForecastPoint{At: at.Time(), Summary: *total})
	}
	return told
}
