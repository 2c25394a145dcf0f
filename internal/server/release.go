package server

import (
	"net/http"

	"capper/internal/capping"
)

// release serves POST /v1/release.
func (s *Server) release(c *call) error {
	body, release, err := s.readBody(c)
	if err != nil {
		return err
	}
	defer release()
	r, err := decodeRelease(*body, s.bounds)
	if err != nil {
		return err
	}
	channel, err := channelOf(r.channel, s.capper.Policy())
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
	results, err := s.capper.Release(ctx, c.message(r.messageID), channel, r.users)

	out, done := newBuffer()
	defer done()
	var unavailable int
	*out, unavailable = releaseAnswer(*out, r, results)
	if unavailable > 0 {
		s.log.Warn("sends not released", "message_id", r.messageID, "users", unavailable, "of", len(r.users), "error", err)
	}
	writeBody(c.w, http.StatusOK, *out)
	return nil
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
