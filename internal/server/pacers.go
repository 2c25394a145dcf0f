package server

import (
	"context"
	"encoding/hex"
	"errors"
	"net/http"
	"net/url"
	"unicode/utf8"

	"capper/client/api"
	"capper/internal/capping"
	"capper/internal/pacing"
	"capper/internal/server/wire"
)

// smallBody is the maximum size in bytes of the request body in a call that lists no users. A request body without
// users usually needs about a twentieth of smallBody.
const smallBody = 64 << 10

// permitsPrice is the price of one permit request in the client's rate limit, which counts users. The price of a permit
// request does not depend on the number of permits, because 100,000 permits are about as much work for the store as
// one.
const permitsPrice = 1

// The method "permits" serves POST /v1/permits.
func (s *Server) permits(c *call) error {
	body, err := s.permitBodies.Read(c.w, c.r, c.holder)
	if err != nil {
		return err
	}
	defer body.Close()
	r, err := wire.DecodePermits(body.Data)
	if err != nil {
		return err
	}
	body.Close()
	p, err := s.budgets.Enter(c.holder, max(1, r.Permits), permitsBytes(r))
	if err != nil {
		return err
	}
	defer p.Close()
	ask := s.askOf(c, r)
	if err := s.pacers.Check(ask); err != nil { // a refused call costs nothing
		return ofPacers(err)
	}
	if err := s.access.Load().MayPace(c.Client, r.Pacers); err != nil {
		return err
	}
	if err := s.access.Load().MayShare(c.Client, r.Share); err != nil {
		return err
	}
	if err := s.admit(c, "permits", permitsPrice); err != nil {
		return err
	}
	given, err := s.take(c, r, ask)
	if err != nil {
		return err
	}
	s.writeAnswer(c, p, wire.EncodePermits(p.Buffer(expectedSlots(given)), r, given))
	return nil
}

// askOf converts an API request for permits to a pacing.Call.
func (s *Server) askOf(c *call, r *wire.PermitsRequest) *pacing.Call {
	ask := &pacing.Call{Pacers: r.Pacers, Permits: r.Permits, MaxWait: r.MaxWait, Client: c.Client,
		RequestID: r.RequestID, Key: r.Key, Share: r.Share, ClientShare: s.access.Load().ShareOf(c.Client),
		Lease: r.Lease}
	if r.MessageID != "" {
		token := c.message(r.MessageID).Token()
		ask.Message = hex.EncodeToString(token[:])
	}
	return ask
}

// ofPacers converts an error of package pacing to a failure for the caller.
func ofPacers(err error) error {
	if fault := (*pacing.FieldError)(nil); errors.As(err, &fault) {
		return wire.Invalid(fault.Field, "%s", fault.Rule)
	}
	return err
}

// The method take asks the pacers for the permits that an API call requests.
func (s *Server) take(c *call, r *wire.PermitsRequest, ask *pacing.Call) (*pacing.Answer, error) {
	// A call for permits goes on without its caller, because calls may share a request to the store.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), s.bounds.Timeout(1))
	defer cancel()
	span := recordSpan{From: s.clock()}
	given, err := s.pacers.Take(ctx, ask)
	span.To = s.clock()
	if errors.As(err, new(*pacing.FieldError)) {
		return nil, ofPacers(err)
	}
	if full := (*pacing.RecordsError)(nil); errors.As(err, &full) {
		s.metrics.Clients.AddRecordless(c.Client)
		f := wire.NewFailure(api.CodeTooManyRecords, "%v", full)
		f.RetryAfter = full.RetryAfter
		return nil, f
	}
	if err != nil {
		s.metrics.Pacers.CountFailure(r.Pacers)
		return nil, wire.StoreFailure(ctx, err)
	}
	s.metrics.Pacers.Count(given)
	if s.journal != nil && r.Permits > 0 {
		s.journal.Permits(span.Permits(c.Caller, c.message(r.MessageID), r, given, s.capper.Segments().Generation()))
	}
	return given, nil
}

// permitsBytes returns the approximate maximum size of the response in bytes, including the memory for encoding. In the
// worst case, the response to a permit request lists a separate slot (start time) for each permit.
func permitsBytes(r *wire.PermitsRequest) int64 { return 2048 + 64*int64(r.Permits) }

// expectedSlots estimates the size in bytes of the response with the granted permits.
func expectedSlots(given *pacing.Answer) int64 { return 2048 + 64*int64(len(given.Runs)) }

// listPacers serves GET /v1/pacers.
func (s *Server) listPacers(c *call) error {
	standings, policy, err := s.look(c, "")
	if err != nil {
		return err
	}
	list := api.Pacers{Pacers: []api.PacerState{}, ConfigVersion: policy.Version}
	for i := range standings {
		list.Pacers = append(list.Pacers, standingOf(&standings[i]))
	}
	return writeJSON(c.w, list)
}

// logParameters are the query parameters that select one log of a pacer that has a separate log for each message or
// key.
var logParameters = []string{"message_id", "namespace", "key"}

// The method pacer serves GET /v1/pacers/{name}.
func (s *Server) pacer(c *call) error {
	if len(c.parameters) > 0 {
		return s.pacerLog(c)
	}
	standings, _, err := s.look(c, c.id)
	if err != nil {
		return err
	}
	return writeJSON(c.w, standingOf(&standings[0]))
}

// pacerLog serves GET /v1/pacers/{name} with a message id or a key. The message id or key names one of the logs of the
// pacer.
func (s *Server) pacerLog(c *call) error {
	ask, err := s.logOf(c)
	if err != nil {
		return err
	}
	ctx, cancel := s.callContext(c, 1)
	defer cancel()
	given, err := s.pacers.Take(ctx, ask)
	switch {
	case errors.As(err, new(*pacing.FieldError)):
		return ofPacers(err)
	case err != nil:
		return wire.StoreFailure(ctx, err)
	}
	answer := stateOf(&pacing.Standing{Pacer: &given.Pacers[0], State: given.States[0]}, true)
	answer.MessageID, answer.Key = c.parameters["message_id"], c.parameters["key"]
	return writeJSON(c.w, answer)
}

// logOf returns a request for 0 permits, for the pacer log (list of granted permits) that the query parameters select.
// If the pacer has no separate logs for messages or keys, logOf returns an error.
func (s *Server) logOf(c *call) (*pacing.Call, error) {
	pacer, known := s.pacers.Policy().Pacer(c.id)
	if !known {
		return nil, s.noSuchPacer(c)
	}
	for _, name := range logParameters {
		per := pacing.PerMessage
		if name == "key" {
			per = pacing.PerKey
		}
		if _, given := c.parameters[name]; given && pacer.Per != per {
			return nil, wire.Invalid(name, "must be absent, because the pacer %q has no separate log for each %s",
				pacer.Name, per)
		}
	}
	ask := &pacing.Call{Pacers: []string{pacer.Name}, Client: c.Client, Key: c.parameters["key"]}
	if pacer.Per == pacing.PerKey {
		return ask, checkKey(ask.Key)
	}
	message, err := callerOf(c).Message(c.parameters["message_id"])
	token := message.Token()
	ask.Message = hex.EncodeToString(token[:])
	return ask, err
}

// checkKey returns an error if a query parameter cannot be the key of a log.
func checkKey(key string) error {
	switch {
	case len(key) > api.MaxPacerKey:
		return wire.Invalid("key", "has %d bytes and must have 1 to %d", len(key), api.MaxPacerKey)
	case !utf8.ValidString(key):
		return wire.Invalid("key", "%q must be valid UTF-8", wire.Clip([]byte(key)))
	}
	return nil
}

// The method look reads the state of the named pacer. If the argument "name" is "", look() reads the states of all
// pacers.
func (s *Server) look(c *call, name string) ([]pacing.Standing, *pacing.Policy, error) {
	ctx, cancel := s.callContext(c, 1)
	defer cancel()
	standings, policy, err := s.pacers.Look(ctx, name)
	if errors.As(err, new(*pacing.FieldError)) {
		return nil, nil, s.noSuchPacer(c)
	}
	if err != nil {
		return nil, nil, wire.StoreFailure(ctx, err)
	}
	return standings, policy, nil
}

func (s *Server) noSuchPacer(c *call) error {
	return wire.NewFailure(api.CodeNotFound, "pacer %q does not exist (%s)", wire.Clip([]byte(pacerName(c))),
		s.pacers.Policy().PacerNames())
}

// pacerName returns the name in the path of the call without escapes, for error texts. Valid names have no escapes.
func pacerName(c *call) string {
	if name, err := url.PathUnescape(c.id); err == nil {
		return name
	}
	return c.id
}

// standingOf converts the state of a pacer to the type that responses use.
func standingOf(s *pacing.Standing) api.PacerState {
	state := stateOf(s, s.Per == pacing.PerPacer && s.Err == nil)
	state.Unavailable = s.Err != nil
	return state
}

// stateOf converts the state of a pacer to the type that responses use. If the argument "counted" is true, s is the
// state of one log of permits. If "counted" is false, the pacer has a separate log for each message or key, and s does
// not say how many permits are used.
func stateOf(s *pacing.Standing, counted bool) api.PacerState {
	answer := api.PacerState{Name: s.Name, QueueMS: api.Millis(s.Queue), NextMS: api.Millis(s.Next),
		MaxWait: capping.Span(s.LongestWait()), Group: s.Group}
	if s.Rate.Permits > 0 {
		answer.Rate = s.Rate.String()
	}
	for _, share := range s.Shares {
		answer.Shares = append(answer.Shares, api.PacerShare{Name: share.Name, Percent: share.Percent})
	}
	for i, limit := range s.Limits {
		use := api.PacerLimitUse{Max: limit.Max, Window: s.LimitName(i)}
		if counted {
			use.Used = &s.Used[i]
		}
		answer.Limits = append(answer.Limits, use)
	}
	if s.Per != pacing.PerPacer {
		answer.Per = string(s.Per)
	}
	if !counted {
		return answer
	}
	if i := s.Fullest(&s.State); i >= 0 {
		answer.Used, answer.Max, answer.Window = &s.Used[i], s.Limits[i].Max, s.LimitName(i)
	}
	return answer
}

// forgetPacer serves DELETE /v1/pacers/{name}. The method forgetPacer accepts every valid name, because the log of a
// pacer may outlive its configuration. If an operator configures a removed pacer again, the permits in the pacer's old
// log are still in force unless an operator has deleted the log.
func (s *Server) forgetPacer(c *call) error {
	if !capping.IsName(c.id) {
		return wire.NewFailure(api.CodeNotFound, "pacer "+capping.NameRule, wire.Clip([]byte(pacerName(c))))
	}
	ctx, cancel := s.callContext(c, 1)
	defer cancel()
	err := s.pacers.Forget(ctx, c.id)
	if errors.As(err, new(*pacing.FieldError)) {
		return s.noSuchPacer(c)
	}
	if err != nil {
		s.audit(c, "forget", "failed", "pacer", c.id)
		return wire.StoreFailure(ctx, err)
	}
	s.metrics.Pacers.Forget(c.id)
	s.audit(c, "forget", "done", "pacer", c.id)
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}
