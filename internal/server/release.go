package server

import (
	"capper/internal/server/answer"
	"capper/internal/server/decode"
)

// release serves POST /v1/release.
func (s *Server) release(c *call) error {
	body, err := s.bodies.Read(c.w, c.r, c.holder)
	if err != nil {
		return err
	}
	defer body.Close()
	r, err := decode.Release(body.Data, s.decodeBounds(body))
	if err != nil {
		return err
	}
	if err := s.findUsers(c, body, &r.Audience); err != nil {
		return err
	}
	body.KeepUsers(len(r.Users))
	channel, err := decode.ChannelOf(r.Channel, s.capper.Policy())
	if err != nil {
		return err
	}
	p, err := s.enter(c, &r.Audience, 1024+24*int64(len(r.Users)))
	if err != nil {
		return err
	}
	defer p.Close()
	body.Close()
	ctx, cancel := s.callContext(c.r, len(r.Users))
	defer cancel()
	results, err := s.capper.Release(ctx, c.message(r.MessageID), channel, r.Users)

	out, unavailable := answer.Release(p.Buffer(11*int64(len(r.Users))), r, results)
	if unavailable > 0 {
		s.log.Warn("sends not released", "message_id", r.MessageID, "users", unavailable, "of", len(r.Users), "request_id", c.requestID, "error", err)
	}
	s.audit(c, "release", outcome(unavailable), "message_id", r.MessageID, "channel", r.Channel,
		"users", len(r.Users), "unavailable", unavailable)
	s.writeAnswer(c, p, out)
	return nil
}

func outcome(unavailable int) string {
	if unavailable > 0 {
		return "partial"
	}
	return "done"
}
