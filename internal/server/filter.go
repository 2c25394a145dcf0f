package server

import (
	"log/slog"

	"capper/client/api"
	"capper/internal/capping"
	"capper/internal/messages"
	"capper/internal/server/gate"
	"capper/internal/server/wire"
	"capper/internal/trace"
)

// The method filter serves POST /v1/filter.
func (s *Server) filter(c *call) error {
	body, r, err := s.readFilter(c)
	if err != nil {
		return err
	}
	defer body.Close()
	if err := s.mayExempt(c, r); err != nil {
		return err
	}
	send, err := s.sendOf(c, r)
	if err != nil {
		return err
	}
	if err := s.findUsers(c, body, &r.Audience, send.Basis.Policy(), true); err != nil {
		return err
	}
	send.Users = r.Users
	size := len(body.Data)
	body.KeepUsers(r.Bytes())
	p, err := s.enter(c, &r.Audience, answerBytes(r))
	if err != nil {
		return err
	}
	defer p.Close()
	if r.Query == nil { // the call may have waited, and a set or a limit may have changed meanwhile
		if send, err = s.sendOf(c, r); err != nil {
			return err
		}
		send.Users = r.Users
	}
	body.Close()
	ctx, cancel := s.callContext(c, len(r.Users))
	defer cancel()
	span := recordSpan{From: s.clock()}
	d := s.capper.Filter(ctx, send)
	span.To = s.clock()
	sum := wire.Summarize(d)
	s.reportFilter(c, r, send, d, sum)

	out := wire.EncodeFilter(p.Buffer(expectedBytes(r, sum, size)), r, d, sum)
	if s.journal != nil && send.Record {
		s.journal.Filter(span.Filter(c.Caller, send, r, d, sum), d)
	}
	s.writeAnswer(c, p, out)
	return nil
}

// readFilter receives and decodes the request of a filter call. The caller of readFilter closes the body that
// readFilter returned.
func (s *Server) readFilter(c *call) (*Body, *wire.FilterRequest, error) {
	_, part := trace.Start(c.ctx, "decode")
	defer part.End()
	body, err := s.bodies.Read(c.w, c.r, c.holder)
	if err != nil {
		return nil, nil, err
	}
	r, err := wire.DecodeFilter(body.Data, s.decodeBounds(body))
	if err != nil {
		body.Close()
		return nil, nil, err
	}
	trace.SetInt(part, "capper.body_bytes", len(body.Data))
	return body, r, nil
}

// mayExempt refuses a call with "enforce": false when the API key lacks the scope "exempt". The method mayExempt counts
// every call with "enforce": false in the metrics.
func (s *Server) mayExempt(c *call, r *wire.FilterRequest) error {
	if r.Enforce {
		return nil
	}
	may := s.access.Load().May(c.Key, gate.ScopeExempt)
	s.metrics.Clients.AddExempt(c.Client, may)
	if may {
		return nil
	}
	return wire.FieldFailure(api.CodeForbidden, "enforce",
		"false requires the scope %q, which the API key %q lacks: an operator can add it to the scopes of the key "+
			"under server.api_keys", gate.ScopeExempt, c.Key)
}

// expectedBytes estimates the size of the body of the response to a filter call. If the request contains bitmaps, the
// estimate is the size of the request body, because bitmaps in responses are about as large.
func expectedBytes(r *wire.FilterRequest, sum *wire.Summary, size int) int64 {
	switch {
	case r.Form == wire.InPacked:
		return int64(1024 + r.IDBytes()*sum.Requested)
	case r.Form == wire.InBitmaps && r.Query == nil:
		return int64(size) + 1024
	case r.Form != wire.InLists:
		return int64(1024 + 3*sum.Requested)
	}
	id := r.IDBytes()
	perDenied := 117 + id
	if r.Counts {
		perDenied = 0
	}
	return int64(1024 + id*(sum.Allowed+sum.Replayed+sum.Unavailable) + perDenied*sum.Denied)
}

// answerBytes estimates the maximum memory in bytes for the response, including the memory for encoding.
func answerBytes(r *wire.FilterRequest) int64 {
	perUser := int64(24)
	if r.Form == wire.InLists && !r.Counts {
		perUser = 128
	}
	if r.Form == wire.InLists && r.Given != nil { // a user may be allowed and replayed, or denied and in a wave
		perUser += int64(r.IDBytes())
	}
	return 1024 + perUser*int64(len(r.Users)) + r.GivenBytes()
}

// sendOf converts a filter request to a capping.Send without users.
func (s *Server) sendOf(c *call, r *wire.FilterRequest) (*capping.Send, error) {
	basis := s.basisOf(r.Query)
	channel, err := wire.SendChannel(r.Channel, basis.Policy())
	if err != nil {
		return nil, err
	}
	at, err := wire.ForecastAt(r.At, s.clock())
	if err != nil {
		return nil, err
	}
	return &capping.Send{
		Message: c.message(r.MessageID), Channel: channel,
		Enforce: r.Enforce, Record: r.Record, At: at, Basis: basis,
	}, nil
}

// The method count adds the decisions of a call to the stored counts of the call's message and of the current hour.
func (s *Server) count(send *capping.Send, d *capping.Decisions, sum *wire.Summary) {
	now := s.clock()
	at, asked := capping.InstantOf(now), int64(sum.Requested)
	s.counter.Add(messages.Key{Message: send.Message, Channel: send.Channel}, asked, func(to *messages.Answers) {
		wire.AddAnswers(to, d, sum, at)
	})
	s.counter.Add(messages.Key{Message: messages.Activity(now), Channel: send.Channel}, asked,
		func(to *messages.Answers) { to.AddActivity(wire.Totals(sum, at), now) })
}

func (s *Server) reportFilter(c *call, r *wire.FilterRequest, send *capping.Send, d *capping.Decisions,
	sum *wire.Summary) {
	if r.Record {
		if s.counter != nil {
			s.count(send, d, sum)
		}
		s.metrics.CountDecisions(sum, d.Names)
		s.metrics.Clients.Add(c.Client, r.Channel, sum)
	}
	if c.span.IsRecording() {
		spanDecided(c.span, d, sum)
		if s.traceMessages {
			c.span.SetAttributes(trace.Text("capper.message_id", r.MessageID))
		}
	}
	if s.log.Enabled(c.ctx, slog.LevelDebug) {
		s.log.DebugContext(c.ctx, "batch decided", "users", sum.Requested, "allowed", sum.Allowed, "denied", sum.Denied,
			"unavailable", sum.Unavailable, "replayed", sum.Replayed, "generation", d.Generation)
	}
	if sum.Unavailable > 0 {
		s.log.WarnContext(c.ctx, "users unavailable", "message_id", r.MessageID, "users", sum.Unavailable,
			"of", sum.Requested, "client", c.Client, "error", d.Err)
	}
}
