package server

import (
	"capper/internal/campaign"
	"capper/internal/capping"
	"capper/internal/server/answer"
	"capper/internal/server/decode"
	"capper/internal/server/record"
)

// filter serves POST /v1/filter.
func (s *Server) filter(c *call) error {
	body, err := s.bodies.Read(c.w, c.r, c.holder)
	if err != nil {
		return err
	}
	defer body.Close()
	r, err := decode.Filter(body.Data, s.decodeBounds(body))
	if err != nil {
		return err
	}
	if err := s.findUsers(c, body, &r.Audience); err != nil {
		return err
	}
	size := len(body.Data)
	body.KeepUsers(len(r.Users))
	send, err := s.sendOf(c, r)
	if err != nil {
		return err
	}
	p, err := s.enter(c, &r.Audience, answerBytes(r))
	if err != nil {
		return err
	}
	defer p.Close()
	body.Close()
	ctx, cancel := s.callContext(c.r, len(r.Users))
	defer cancel()
	span := record.Span{From: s.clock()}
	d := s.capper.Filter(ctx, send)
	span.To = s.clock()
	sum := answer.Summarize(d)
	s.reportFilter(c, r, send, d, sum)

	out := answer.Filter(p.Buffer(expectedBytes(r, sum, size)), r, d, sum)
	if s.journal != nil && send.Record {
		s.journal.Filter(span.Filter(c.Caller, send, r, d, sum), d)
	}
	s.writeAnswer(c, p, out)
	return nil
}

// expectedBytes is about what the answer to a body of the size takes: the
// bitmaps of answers are about as large as those of requests.
func expectedBytes(r *decode.FilterRequest, sum *answer.Summary, size int) int64 {
	if r.Query != nil {
		return int64(1024 + 3*sum.Requested)
	}
	if r.Bitmap {
		return int64(size) + 1024
	}
	perDenied := 128
	if r.Counts {
		perDenied = 0
	}
	return int64(1024 + 11*(sum.Allowed+sum.Replayed+sum.Unavailable) + perDenied*sum.Denied)
}

// answerBytes is about the most that the answer takes, with what it is made of.
func answerBytes(r *decode.FilterRequest) int64 {
	perUser := int64(24)
	if !r.Bitmap && !r.Counts {
		perUser = 128
	}
	return 1024 + perUser*int64(len(r.Users))
}

// sendOf is the caller's request as the domain takes it.
func (s *Server) sendOf(c *call, r *decode.FilterRequest) (*capping.Send, error) {
	channel, err := decode.ChannelOf(r.Channel, s.capper.Policy())
	if err != nil {
		return nil, err
	}
	at, err := decode.ForecastAt(r.At, s.clock())
	if err != nil {
		return nil, err
	}
	return &capping.Send{
		Message: c.message(r.MessageID), Channel: channel, Users: r.Users,
		Enforce: r.Enforce, Record: r.Record, At: at,
	}, nil
}

func (s *Server) reportFilter(c *call, r *decode.FilterRequest, send *capping.Send, d *capping.Decisions, sum *answer.Summary) {
	if r.Record {
		if s.campaigns != nil {
			at := capping.InstantOf(s.clock())
			s.campaigns.Add(campaign.Key{Message: send.Message, Channel: send.Channel}, int64(sum.Requested), func(to *campaign.Answers) {
				answer.AddAnswers(to, d, sum, at)
			})
		}
		s.metrics.CountDecisions(sum, d.Names)
		s.metrics.Clients.Add(c.Client, r.Channel, sum)
	}
	if sum.Unavailable > 0 {
		s.log.Warn("users unavailable", "message_id", r.MessageID, "users", sum.Unavailable,
			"of", sum.Requested, "client", c.Client, "request_id", c.requestID, "error", d.Err)
	}
}
