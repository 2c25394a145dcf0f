package server

import (
	"capper/internal/capping"
)

// filter serves POST /v1/filter.
func (s *Server) filter(c *call) error {
	body, err := s.readBody(c)
	defer body.close()
	if err != nil {
		return err
	}
	r, err := decodeFilter(body.data, s.bounds, body.room)
	if err != nil {
		return err
	}
	size := len(body.data)
	body.decoded(&r.audience)
	send, err := s.sendOf(c, r)
	if err != nil {
		return err
	}
	p, err := s.enter(c, &r.audience, r.answerBytes())
	if err != nil {
		return err
	}
	defer p.close()
	body.close()
	ctx, cancel := s.callContext(c.r, len(r.users))
	defer cancel()
	d := s.capper.Filter(ctx, send)
	t := tallyOf(d)
	s.reportFilter(c, r, d, t)

	p.answer(filterAnswer(p.buffer(r.expectedBytes(t, size)), r, d, t))
	return nil
}

// expectedBytes is about what the answer to a body of the size takes: the
// bitmaps of answers are about as large as those of requests.
func (r *filterRequest) expectedBytes(t *tally, size int) int64 {
	if r.bitmap {
		return int64(size) + 1024
	}
	perDenied := 128
	if r.counts {
		perDenied = 0
	}
	return int64(1024 + 11*(t.allowed+t.replayed+t.unavailable) + perDenied*t.denied)
}

// answerBytes is about the most that the answer takes, with what it is made of.
func (r *filterRequest) answerBytes() int64 {
	perUser := int64(24)
	if !r.bitmap && !r.counts {
		perUser = 128
	}
	return 1024 + perUser*int64(len(r.users))
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

func (s *Server) reportFilter(c *call, r *filterRequest, d *capping.Decisions, t *tally) {
	if r.record {
		s.metrics.decisions(t, d.Names)
		s.metrics.ofClient(c.client, r.channel, t)
	}
	if t.unavailable > 0 {
		s.log.Warn("users unavailable", "message_id", r.messageID, "users", t.unavailable,
			"of", t.requested, "client", c.client, "request_id", c.requestID, "error", d.Err)
	}
}
