package server

import (
	"context"
	"errors"

	"capper/client/api"
	"capper/internal/pacing"
	"capper/internal/server/wire"
)

// returnPermits serves POST /v1/permits/return.
func (s *Server) returnPermits(c *call) error {
	body, err := s.permitBodies.Read(c.w, c.r, c.holder)
	if err != nil {
		return err
	}
	defer body.Close()
	r, err := wire.DecodeReturn(body.Data)
	if err != nil {
		return err
	}
	body.Close()
	ask := s.askOf(c, &r.PermitsRequest)
	if err := s.pacers.Check(ask); err != nil { // a refused call costs nothing
		return ofPacers(err)
	}
	if err := s.access.Load().MayPace(c.Client, r.Pacers); err != nil {
		return err
	}
	if err := s.admit(c, "permits", permitsPrice); err != nil {
		return err
	}
	back, err := s.giveBack(c, ask, r.Used)
	if err != nil {
		return err
	}
	return writeJSON(c.w, returnedOf(back))
}

// giveBack returns unused permits of an earlier call to the pacers.
func (s *Server) giveBack(c *call, ask *pacing.Call, used int) (*pacing.Back, error) {
	ctx, cancel := s.callContext(c, 1)
	defer cancel()
	back, err := s.pacers.Return(ctx, ask, used)
	if errors.As(err, new(*pacing.FieldError)) {
		return nil, ofPacers(err)
	}
	if err != nil {
		s.metrics.Pacers.CountFailure(ask.Pacers)
		return nil, wire.StoreFailure(ctx, err)
	}
	s.metrics.Pacers.CountReturned(back)
	if back.Permits > 0 {
		s.showReturned(ctx, back.Pacers)
	}
	return back, nil
}

// showReturned updates the metrics of the pacers' free permits after a client has returned unused permits. If the store
// does not respond, the metrics of free permits stay unchanged until the next permit request.
func (s *Server) showReturned(ctx context.Context, pacers []pacing.Pacer) {
	for i := range pacers {
		if pacer := &pacers[i]; pacer.Per == pacing.PerPacer {
			if standings, _, err := s.pacers.Look(ctx, pacer.Name); err == nil {
				s.metrics.Pacers.See(&standings[0])
			}
		}
	}
}

// ReturnEnded finds the requests for permits whose lease (time limit for unused permits) has ended, and gives their
// unused permits back to the pacers. If giving permits back fails, the next call of ReturnEnded continues with the
// remaining requests.
func (s *Server) ReturnEnded(ctx context.Context) error {
	pacers, err := s.pacers.ReturnEnded(ctx)
	s.showReturned(ctx, pacers)
	return err
}

// returnedOf converts the result of giving permits back to the type that responses use.
func returnedOf(back *pacing.Back) *api.PermitsReturned {
	answer := &api.PermitsReturned{Returned: back.Permits, Kept: back.Kept, Remembered: back.Known}
	for i := range back.Pacers {
		answer.Pacers = append(answer.Pacers, api.PacerReturned{Name: back.Pacers[i].Name, Returned: back.Targets[i]})
	}
	return answer
}
