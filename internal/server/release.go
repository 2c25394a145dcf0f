package server

import (
	"capper/internal/capping"
)

// release serves POST /v1/release.
func (s *Server) release(c *call) error {
	body, err := s.readBody(c)
	defer body.close()
	if err != nil {
		return err
	}
	r, err := decodeRelease(body.data, s.bounds, body.room)
	if err != nil {
		return err
	}
	body.decoded(&r.audience)
	channel, err := channelOf(r.channel, s.capper.Policy())
	if err != nil {
		return err
	}
	p, err := s.enter(c, &r.audience, 1024+24*int64(len(r.users)))
	if err != nil {
		return err
	}
	defer p.close()
	body.close()
	ctx, cancel := s.callContext(c.r, len(r.users))
	defer cancel()
	results, err := s.capper.Release(ctx, c.message(r.messageID), channel, r.users)

	out, unavailable := releaseAnswer(p.buffer(11*int64(len(r.users))), r, results)
	if unavailable > 0 {
		s.log.Warn("sends not released", "message_id", r.messageID, "users", unavailable, "of", len(r.users), "request_id", c.requestID, "error", err)
	}
	s.audit(c, "release", outcome(unavailable), "message_id", r.messageID, "channel", r.channel,
		"users", len(r.users), "unavailable", unavailable)
	p.answer(out)
	return nil
}

func outcome(unavailable int) string {
	if unavailable > 0 {
		return "partial"
	}
	return "done"
}

// releaseAnswer appends the response to dst.
func releaseAnswer(dst []byte, r *releaseRequest, results []capping.Released) (out []byte, unavailable int) {
	a := &answer{out: dst}
	released := resultsOf(r.users, results, capping.ReleaseDone)
	open := resultsOf(r.users, results, capping.ReleaseUnavailable)
	if r.bitmap {
		a.raw(`{"released_bitmap":`).bitmap(released)
		a.raw(`,"unavailable_bitmap":`).bitmap(open)
	} else {
		a.raw(`{"released":`).list(released)
		a.raw(`,"unavailable":`).list(open)
	}
	a.raw(`,"summary":{"requested":`).number(len(r.users) + r.duplicates)
	a.raw(`,"released":`).number(len(released))
	a.raw(`,"absent":`).number(len(r.users) - len(released) - len(open))
	a.raw(`,"unavailable":`).number(len(open))
	a.raw(`,"duplicates":`).number(r.duplicates)
	a.raw("}}\n")
	return a.out, len(open)
}

func resultsOf(users []capping.UserID, results []capping.Released, want capping.Released) []capping.UserID {
	var matching []capping.UserID
	for i, result := range results {
		if result == want {
			matching = append(matching, users[i])
		}
	}
	return matching
}
