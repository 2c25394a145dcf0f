package server

import (
	"capper/internal/audit"
	"capper/internal/capping"
	"capper/internal/server/answer"
	"capper/internal/server/decode"
	"capper/internal/server/messages"
	"capper/internal/server/record"
)

// listMessages serves GET /v1/messages.
func (s *Server) listMessages(c *call) error {
	ctx, cancel := s.callContext(c.r, 1)
	defer cancel()
	list, err := s.messages.List(ctx, callerOf(c))
	if err != nil {
		return err
	}
	return writeJSON(c.w, list)
}

// messageCounts serves GET /v1/messages/{id}.
func (s *Server) messageCounts(c *call) error {
	ctx, cancel := s.callContext(c.r, 1)
	defer cancel()
	one, err := s.messages.One(ctx, callerOf(c), c.id)
	if err != nil {
		return err
	}
	return writeJSON(c.w, one)
}

// releaseMessage serves POST /v1/messages/{id}/release.
func (s *Server) releaseMessage(c *call) error {
	body, err := s.smallBodies.Read(c.w, c.r, c.holder)
	if err != nil {
		return err
	}
	defer body.Close()
	channel, err := decode.ReleaseMessage(body.Data)
	if err != nil {
		return err
	}
	p, err := s.budgets.Enter(c.holder, messages.PartUsers, 1024)
	if err != nil {
		return err
	}
	defer p.Close()
	ctx, cancel := s.callContext(c.r, s.bounds.BitmapUsers)
	defer cancel()
	given, err := s.messages.Release(ctx, callerOf(c), c.id, channel, func(part *messages.Part) {
		span := record.Span{From: part.At, To: part.At.Add(part.Took)}
		s.recordRelease(span.Release(c.Caller, part.Message, part.Channel, &decode.Audience{}), part.Users, part.Results)
		if part.Err != nil {
			s.log.Warn("sends not released", "message_id", c.id, "of", len(part.Users), "request_id", c.requestID, "error", part.Err)
		}
	})
	if err != nil {
		return err
	}
	s.audit(c, "release", outcome(int(given.Unavailable+given.Missing)), "message_id", c.id, "channel", channel,
		"users", given.Released, "unavailable", given.Unavailable, "missing", given.Missing)
	return writeJSON(c.w, given)
}

func callerOf(c *call) messages.Caller {
	return messages.Caller{Namespace: c.Namespace, Parameters: c.parameters}
}

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
	message, span := c.message(r.MessageID), record.Span{From: s.clock()}
	results, err := s.capper.Release(ctx, message, channel, r.Users)
	span.To = s.clock()

	out, unavailable := answer.Release(p.Buffer(11*int64(len(r.Users))), r, results)
	if unavailable > 0 {
		s.log.Warn("sends not released", "message_id", r.MessageID, "users", unavailable, "of", len(r.Users), "request_id", c.requestID, "error", err)
	}
	s.audit(c, "release", outcome(unavailable), "message_id", r.MessageID, "channel", r.Channel,
		"users", len(r.Users), "unavailable", unavailable)
	s.recordRelease(span.Release(c.Caller, message, channel, &r.Audience), r.Users, results)
	s.writeAnswer(c, p, out)
	return nil
}

// recordRelease records a release under what is in force.
func (s *Server) recordRelease(r *audit.Record, users []capping.UserID, results []capping.Released) {
	r.Generation, r.Config = s.capper.Segments().Generation(), s.capper.Policy().Version
	s.journal.Release(r, users, results)
}

func outcome(unavailable int) string {
	if unavailable > 0 {
		return "partial"
	}
	return "done"
}
