package server

import (
	"context"
	"errors"
	"time"

	"capper/client/api"
	"capper/internal/audit"
	"capper/internal/capping"
	"capper/internal/server/gate"
	"capper/internal/server/wire"
)

// listMessages serves GET /v1/messages.
func (s *Server) listMessages(c *call) error {
	ctx, cancel := s.callContext(c, 1)
	defer cancel()
	list, err := s.messages.List(ctx, callerOf(c))
	if err != nil {
		return err
	}
	return writeJSON(c.w, list)
}

// messageCounts serves GET /v1/messages/{id}.
func (s *Server) messageCounts(c *call) error {
	ctx, cancel := context.WithTimeout(c.ctx, readingTime*s.bounds.CallTimeout)
	defer cancel()
	one, err := s.messages.One(ctx, callerOf(c), c.id)
	if err != nil {
		return err
	}
	return writeJSON(c.w, one)
}

// setTitle serves PUT /v1/messages/{id}.
func (s *Server) setTitle(c *call) error {
	body, err := s.smallBodies.Read(c.w, c.r, c.holder)
	if err != nil {
		return err
	}
	defer body.Close()
	title, err := wire.DecodeTitle(body.Data)
	if err != nil {
		return err
	}
	if err := s.mayChangeAcross(c, "naming"); err != nil {
		return err
	}
	if err := s.admit(c, "title", 1); err != nil {
		return err
	}
	ctx, cancel := s.callContext(c, 1)
	defer cancel()
	set, err := s.messages.SetTitle(ctx, callerOf(c), c.id, title)
	if err != nil {
		return err
	}
	s.audit(c, "title", "done", "message_id", c.id, "title", title)
	return writeJSON(c.w, set)
}

// releaseMessage serves POST /v1/messages/{id}/release.
func (s *Server) releaseMessage(c *call) error {
	body, err := s.smallBodies.Read(c.w, c.r, c.holder)
	if err != nil {
		return err
	}
	defer body.Close()
	channel, err := wire.DecodeReleaseMessage(body.Data)
	if err != nil {
		return err
	}
	if err := s.mayChangeAcross(c, "releasing"); err != nil {
		return err
	}
	p, err := s.budgets.Enter(c.holder, partUsers, 1024)
	if err != nil {
		return err
	}
	defer p.Close()
	ctx, cancel := s.callContext(c, s.bounds.BitmapUsers)
	defer cancel()
	given, err := s.messages.Release(ctx, callerOf(c), c.id, channel, func(part *part) {
		span := recordSpan{From: part.At, To: part.At.Add(part.Took)}
		s.recordRelease(span.Release(c.Caller, part.Message, part.Channel, &wire.Audience{}), part.Users,
			part.Results)
		if part.Err != nil {
			s.log.WarnContext(c.ctx, "sends not released", "message_id", c.id, "of", len(part.Users), "error", part.Err)
		}
	})
	if err != nil {
		return err
	}
	s.audit(c, "release", outcome(int(given.Unavailable+given.Missing)), "message_id", c.id, "channel", channel,
		"users", given.Released, "unavailable", given.Unavailable, "missing", given.Missing)
	return writeJSON(c.w, given)
}

// mayChangeAcross refuses a call that changes a message of another namespace, unless the API key has the scope "admin".
// Without the check of mayChangeAcross, an API key with the scope "filter" and without a namespace could release the
// campaigns of every team. The argument "does" is the verb of the error text, which says what the call would change.
func (s *Server) mayChangeAcross(c *call, does string) error {
	namespace := c.parameters["namespace"]
	if c.Namespace != "" || namespace == "" || s.access.Load().May(c.Key, gate.ScopeAdmin) {
		return nil
	}
	return wire.NewFailure(
		api.CodeForbidden,
		"the API key %q has no namespace and lacks the scope %q: "+
			"%s a message of the namespace %q requires this scope in addition to %q",
		c.Key,
		gate.ScopeAdmin,
		does,
		wire.Clip([]byte(namespace)),
		gate.ScopeFilter,
	)
}

func callerOf(c *call) caller {
	return caller{Namespace: c.Namespace, Parameters: c.parameters}
}

// The method release serves POST /v1/release.
func (s *Server) release(c *call) error {
	body, err := s.bodies.Read(c.w, c.r, c.holder)
	if err != nil {
		return err
	}
	defer body.Close()
	r, err := wire.DecodeRelease(body.Data, s.decodeBounds(body))
	if err != nil {
		return err
	}
	if err := s.findUsers(c, body, &r.Audience, s.capper.Policy(), true); err != nil {
		return err
	}
	channel, p, err := s.enterMessage(c, body, r)
	if err != nil {
		return err
	}
	defer p.Close()
	ctx, cancel := s.callContext(c, len(r.Users))
	defer cancel()
	message, span := c.message(r.MessageID), recordSpan{From: c.asked.Time()} // later sends stay, see capping.Caller
	results, err := s.capper.Release(ctx, message, channel, r.Users)
	span.To = s.clock()

	out, unavailable := wire.EncodeRelease(p.Buffer(int64(r.IDBytes()*len(r.Users))), r, results)
	if unavailable > 0 {
		s.log.WarnContext(c.ctx, "sends not released", "message_id", r.MessageID, "users", unavailable, "of",
			len(r.Users), "error", err)
	}
	s.audit(c, "release", outcome(unavailable), "message_id", r.MessageID, "channel", r.Channel,
		"users", len(r.Users), "unavailable", unavailable)
	s.recordRelease(span.Release(c.Caller, message, channel, &r.Audience), r.Users, results)
	s.writeAnswer(c, p, out)
	return nil
}

// recordRelease writes the audit record of a release (removal of recorded sends), with the versions of the current
// configuration and segments.
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

// importSends serves POST /v1/sends.
func (s *Server) importSends(c *call) error {
	body, err := s.bodies.Read(c.w, c.r, c.holder)
	if err != nil {
		return err
	}
	defer body.Close()
	if c.Namespace, err = callerOf(c).ForImport(); err != nil {
		return err
	}
	now := s.clock()
	r, err := wire.DecodeImport(body.Data, s.decodeBounds(body), now,
		now.Add(max(s.capper.Store().ClockTolerance(), time.Second)))
	if err != nil {
		return err
	}
	sent, err := s.sentOf(c, r, capping.InstantOf(now.Add(-s.capper.Retention())))
	if err != nil {
		return err
	}
	p, err := s.enterImport(c, sent, r.UserBytes())
	if err != nil {
		return err
	}
	defer p.Close()
	ctx, cancel := s.callContext(c, len(r.Sends))
	defer cancel()
	merge := capping.MergeOf(sent)
	merge.Counted, merge.Messages = true, s.importedMessages(c, r)
	body.KeepUsers(r.Bytes())
	sum := api.ImportSummary{Requested: len(r.Sends), Expired: len(r.Sends) - len(sent)}
	merged, err := s.capper.Merge(ctx, merge)
	if errors.Is(err, capping.ErrNoMerger) {
		return wire.NewFailure(api.CodeConflict, "%s", err)
	}
	unavailable := summarizeImport(&sum, sent, merge, merged)
	if sum.Unavailable > 0 {
		s.log.WarnContext(c.ctx, "sends not imported", "sends", sum.Unavailable, "of", len(r.Sends), "error", err)
	}
	s.metrics.CountImported(&sum)
	s.audit(c, "import", outcome(sum.Unavailable), "sends", sum.Requested, "added", sum.Added, "unavailable",
		sum.Unavailable)
	return writeJSON(c.w, r.Answer(unavailable, sum))
}

// enterImport admits an import of sends. The method enterImport reserves one user in the budget for each send, and
// charges the users of the import to the client's rate limit. The argument idBytes is the size in bytes of one user id
// in the response.
func (s *Server) enterImport(c *call, sent []capping.Sent, idBytes int64) (*gate.Place, error) {
	users := make(map[capping.UserID]struct{})
	for i := range sent {
		users[sent[i].User] = struct{}{}
	}
	p, err := s.budgets.Enter(c.holder, len(sent), 1024+idBytes*int64(len(users)))
	if err != nil {
		return nil, err
	}
	if err := s.admit(c, "sends", max(len(users), 1)); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// sentOf converts the imported sends to capping.Sent, and leaves out sends that are too old to count towards a limit.
// If a channel is unknown, sentOf returns an error.
func (s *Server) sentOf(c *call, r *wire.ImportRequest, horizon capping.Instant) ([]capping.Sent, error) {
	policy := s.capper.Policy()
	if err := r.SendsHaveChannels(policy); err != nil {
		return nil, err
	}
	channels, err := r.ChannelNumbers(policy)
	if err != nil {
		return nil, err
	}
	tokens := make([]capping.Token, len(r.Messages))
	for i, id := range r.Messages {
		tokens[i] = c.message(id).Token()
	}
	sent := make([]capping.Sent, 0, len(r.Sends))
	for _, send := range r.Sends {
		if send.At > horizon && send.At >= 0 {
			sent = append(sent, capping.Sent{User: send.User, Entry: capping.Entry{
				At: send.At, Channel: channels[send.Channel], Token: tokens[send.Message],
			}})
		}
	}
	return sent, nil
}

// importedMessages returns those messages of an import that the store should remember and whose sends it should count.
func (s *Server) importedMessages(c *call, r *wire.ImportRequest) (messages []capping.Message) {
	sends := make([]int, len(r.Messages))
	for _, send := range r.Sends {
		sends[send.Message]++
	}
	for i, id := range r.Messages {
		if message := c.message(id); s.imported.KeepSends(message, sends[i]) {
			messages = append(messages, message)
		}
	}
	return messages
}

// summarizeImport counts the imported sends by their result, and returns the users whose sends the store may or may not
// have recorded.
func summarizeImport(sum *api.ImportSummary, sent []capping.Sent, m *capping.Merge,
	merged []capping.Merged) []capping.UserID {
	unavailable := []capping.UserID{}
	rest := sent // sorted by user
	for i, user := range m.Users {
		n := 0
		for n < len(rest) && rest[n].User == user {
			n++
		}
		rest = rest[n:]
		if !merged[i].Done {
			unavailable = append(unavailable, user)
			sum.Unavailable += n
			continue
		}
		sum.Added += int(merged[i].Added)
		sum.Known += n - int(merged[i].Added)
	}
	return unavailable
}
