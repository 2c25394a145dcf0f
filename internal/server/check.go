package server

import (
	"capper/internal/capping"
	"capper/internal/server/gate"
	"capper/internal/server/wire"
)

// checkSends serves POST /v1/sends/check.
func (s *Server) checkSends(c *call) error {
	body, err := s.bodies.Read(c.w, c.r, c.holder)
	if err != nil {
		return err
	}
	defer body.Close()
	r, err := wire.DecodeCheck(body.Data, s.decodeBounds(body))
	if err != nil {
		return err
	}
	message, err := callerOf(c).Message(r.MessageID)
	if err != nil {
		return err
	}
	channel, p, err := s.enterMessage(c, body, r)
	if err != nil {
		return err
	}
	defer p.Close()
	ctx, cancel := s.callContext(c, len(r.Users))
	defer cancel()
	found, err := s.capper.Recorded(ctx, message, channel, r.Users)
	if err != nil {
		s.log.WarnContext(c.ctx, "sends not checked", "message_id", r.MessageID, "of", len(r.Users), "error", err)
	}
	return writeJSON(c.w, wire.CheckAnswer(r, found, s.clock(), s.locate()))
}

// enterMessage admits a call about users of one message, and returns the channel that the request names. The method
// enterMessage gives the memory of the request body back to the budget.
func (s *Server) enterMessage(
	c *call, b *Body, r *wire.MessageRequest,
) (capping.Channel, *gate.Place, error) {
	b.KeepUsers(r.Bytes())
	channel, err := wire.ChannelOf(r.Channel, s.capper.Policy())
	if err != nil {
		return 0, nil, err
	}
	p, err := s.enter(c, &r.Audience, 1024+24*int64(len(r.Users))+r.GivenBytes())
	if err != nil {
		return 0, nil, err
	}
	b.Close()
	return channel, p, nil
}

// The method locate returns a function that finds the partition and the node of the store that hold a user's log. If
// the whole store is one location, locate() returns nil.
func (s *Server) locate() func(capping.UserID) capping.Location {
	locator, ok := capping.As[capping.Locator](s.capper.Store())
	if !ok {
		return nil
	}
	return locator.Locate
}
