package server

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"capper/client/api"
	"capper/internal/audit/archive"
	"capper/internal/capping"
	"capper/internal/server/wire"
)

// userID parses a dense user id (32-bit number) in a URL path: decimal digits without leading zeros.
func userID(text string) (capping.UserID, error) {
	if id, ok := wire.UserID(text); ok {
		return id, nil
	}
	return 0, wire.Invalid("user_id", "%s is not a user id (0 to 4294967295)", wire.Clip([]byte(text)))
}

// The method user parses the user id in the URL path of a call, in the format of the deployment's kind of ids. If the
// id is dense (a 32-bit number), the result "id" is ""; otherwise it is the canonical text of the user id.
func (s *Server) user(c *call) (user capping.UserID, id string, err error) {
	if s.ids == nil {
		user, err = userID(c.id)
		return user, "", err
	}
	given := c.id
	if c.r.URL.RawPath != "" { // the router does not unescape the parameters of such a path
		if given, err = url.PathUnescape(given); err != nil {
			return 0, "", wire.Invalid("user_id", "%s is not valid in a URL", wire.Clip([]byte(c.id)))
		}
	}
	image, err := s.ids.Parse([]byte(given))
	if err != nil {
		return 0, "", wire.Invalid("user_id", "%s", err)
	}
	canonical, err := s.ids.Canonical(nil, []byte(given))
	return capping.UserID(image), string(canonical), err
}

// The method explain serves GET /v1/users/{id}.
func (s *Server) explain(c *call) error {
	user, id, err := s.user(c)
	if err != nil {
		return err
	}
	if err := s.admit(c, "user_id", 1); err != nil {
		return err
	}
	ctx, cancel := s.callContext(c, 1)
	defer cancel()
	e, err := s.capper.Explain(ctx, user)
	if err != nil {
		return wire.StoreFailure(ctx, err)
	}
	told := wire.Explanation(user, e)
	told.Live = s.liveMemberships(user)
	s.addTitles(ctx, c.Namespace, titlesOfSends(told.Sends))
	if s.ids != nil {
		return writeJSON(c.w, &api.ExplanationOfID{UserID: id, Explanation: *told})
	}
	return writeJSON(c.w, told)
}

// The method erase serves DELETE /v1/users/{id}. The method erase keeps the changes of sets that API calls made, such
// as opt-outs of the person, unless the caller requests their removal.
func (s *Server) erase(c *call) error {
	user, _, err := s.user(c)
	if err != nil {
		return err
	}
	sets, err := wire.Flag(c.parameters, "sets")
	if err != nil {
		return err
	}
	said := []any{"user_id", user}
	if s.ids != nil { // logs must not contain ids; the store already contains images
		said = []any{"image", fmt.Sprintf("%016x", uint64(user))}
	}
	if sets {
		said = append(said, "sets", sets)
	}
	ctx, cancel := s.callContext(c, 1)
	defer cancel()
	if err := s.capper.Erase(ctx, user); err != nil {
		s.audit(c, "erase", "failed", said...)
		return wire.StoreFailure(ctx, err)
	}
	if sets {
		if err := s.forgetChanges(ctx, c, user); err != nil {
			s.audit(c, "erase", "partial", said...)
			f := wire.NewFailure(api.CodeUnavailable, "the user's log is erased, "+
				"but not every change of a set that names the user: try again")
			f.Cause = err
			return f
		}
	}
	if err := s.journal.Erase(ctx, user); err != nil {
		s.audit(c, "erase", "partial", said...)
		f := wire.NewFailure(api.CodeUnavailable, "the log of the user is erased, but the audit could not record the "+
			"erasure: try again")
		f.Cause = err
		return f
	}
	s.audit(c, "erase", "done", said...)
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

// The method "decisions" serves GET /v1/users/{id}/decisions.
func (s *Server) decisions(c *call) error {
	user, id, err := s.user(c)
	if err != nil {
		return err
	}
	now := s.clock()
	since, err := since(c.parameters["since"], now)
	if err != nil {
		return err
	}
	if err := s.admit(c, "user_id", 1); err != nil {
		return err
	}
	ctx, cancel := s.findContext(c)
	defer cancel()
	found, err := s.past.User(ctx, c.Namespace, user, since.Time(), now)
	if err != nil {
		return err
	}
	s.addTitles(ctx, c.Namespace, titlesOfDecisions(found.Decisions))
	if s.ids != nil {
		return writeJSON(c.w, &api.DecisionsOfID{UserID: id, Since: found.Since, More: found.More,
			Faults: found.Faults, Decisions: found.Decisions})
	}
	return writeJSON(c.w, found)
}

// decidedUsers serves GET /v1/decisions.
func (s *Server) decidedUsers(c *call) error {
	message, err := caller{Namespace: c.Namespace, Parameters: c.parameters}.Message(
		c.parameters["message_id"])
	if err != nil {
		return err
	}
	channel, err := wire.ChannelOf(c.parameters["channel"], s.capper.Policy())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.ctx, readingTime*s.bounds.CallTimeout)
	defer cancel()
	if s.ids != nil {
		found, err := s.past.MessageIDs(ctx, message, channel, s.name())
		if err != nil {
			return err
		}
		return writeJSON(c.w, found)
	}
	found, err := s.past.Message(ctx, message, channel)
	if err != nil {
		return err
	}
	return writeJSON(c.w, found)
}

// The method name returns a function that appends the id of a user to dst. The returned function takes the ids from the
// segments generation (published version) in use.
func (s *Server) name() func(dst []byte, user capping.UserID) []byte {
	if snapshot := s.inUse(); snapshot != nil {
		return snapshot.Name
	}
	return func(dst []byte, user capping.UserID) []byte { return append(dst, archive.ImageName(user)...) }
}

// readingTime is the time limit for reading the audit for a message, as a multiple of the usual time limit of a call.
const readingTime = 2
