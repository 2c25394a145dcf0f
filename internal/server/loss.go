package server

import (
	"errors"
	"time"

	"capper/client/api"
	"capper/internal/capping"
	"capper/internal/server/wire"
)

// acceptLoss serves POST /v1/store/accept.
func (s *Server) acceptLoss(c *call) error {
	body, err := s.bodies.Read(c.w, c.r, c.holder)
	if err != nil {
		return err
	}
	defer body.Close()
	reason, err := wire.DecodeAccept(body.Data, s.decodeBounds(body))
	if err != nil {
		return err
	}
	store, ok := capping.As[capping.Accepter](s.capper.Store())
	if !ok {
		return wire.NewFailure(api.CodeConflict, "this service uses the embedded store, "+
			"but only a store in Redis can have a loss that an operator accepts")
	}
	ctx, cancel := s.callContext(c, 0)
	defer cancel()
	losses, err := store.AcceptLoss(ctx, reason)
	var refused *capping.LossError
	switch {
	case errors.As(err, &refused):
		s.audit(c, "accept", "refused", "reason", reason, "because", refused.Error())
		return wire.NewFailure(api.CodeConflict, "%s", refused)
	case err != nil && losses == nil:
		s.audit(c, "accept", "failed", "reason", reason)
		f := wire.NewFailure(api.CodeUnavailable, "the loss was not accepted: %s", err)
		f.Cause = err
		return f
	}
	answer := api.Accepted{Losses: []api.AcceptedLoss{}}
	for _, l := range losses {
		answer.Losses = append(answer.Losses, api.AcceptedLoss{
			Node: l.Node, Reason: l.Reason, What: l.What, Since: l.Since.UTC().Truncate(time.Millisecond),
			Partitions: l.Partitions,
		})
		s.audit(c, "accept", "done", "reason", reason, "node", l.Node, "loss", l.What, "partitions", l.Partitions)
	}
	return writeJSON(c.w, answer)
}
