package server

import (
	"net/http"

	"capper/internal/capping"
)

// filter serves POST /v1/filter.
func (s *Server) filter(c *call) error {
	body, release, err := s.readBody(c)
	if err != nil {
		return err
	}
	defer release()
	r, err := decodeFilter(*body, s.bounds)
	if err != nil {
		return err
	}
	send, err := s.sendOf(c, r)
	if err != nil {
		return err
	}
	leave, err := s.enter(c, &r.audience)
	if err != nil {
		return err
	}
	defer leave()
	ctx, cancel := s.callContext(c.r, len(r.users))
	defer cancel()
	d := s.capper.Filter(ctx, send)
	t := tallyOf(d)
	s.reportFilter(r, d, t)

	out, done := newBuffer()
	defer done()
	*out = filterAnswer(*out, r, d, t)
	writeBody(c.w, http.StatusOK, *out)
	return nil
}

// sendOf is the caller's request as the domain takes it.
func (s *Server) sendOf(c *call, r *filterRequest) (*capping.Send, error) {
	channel, err := channelOf(r.channel, s.capper.Policy())
	if err != nil {
		return nil, err
	}
	at, err := forecastAt(r.at, s.clock())
	if err != nil {
		return nil, err
	}
	return &capping.Send{
		Message: c.message(r.messageID), Channel: channel, Users: r.users,
		Exempt: !r.enforce, Preview: !r.record, At: at,
	}, nil
}

func (s *Server) reportFilter(r *filterRequest, d *capping.Decisions, t *tally) {
	if r.record {
		s.metrics.decisions(t, d.Names)
	}
	if t.unavailable > 0 {
		s.log.Warn("users unavailable", "message_id", r.messageID, "users", t.unavailable,
			"of", t.requested, "error", d.Err)
	}
}
