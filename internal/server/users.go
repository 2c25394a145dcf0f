package server

import (
	"net/http"

	"capper/client/api"
	"capper/internal/capping"
	"capper/internal/server/answer"
	"capper/internal/server/decode"
	"capper/internal/server/failure"
)

// userID reads the id of a path: digits, without leading zeros.
func userID(text string) (capping.UserID, error) {
	if id, ok := decode.UserID(text); ok {
		return id, nil
	}
	return 0, failure.Invalid("user_id", "%s is not a user id (0 to 4294967295)", failure.Clip([]byte(text)))
}

// explain serves GET /v1/users/{id}.
func (s *Server) explain(c *call) error {
	user, err := userID(c.id)
	if err != nil {
		return err
	}
	if err := s.admit(c, "user_id", 1); err != nil {
		return err
	}
	ctx, cancel := s.callContext(c.r, 1)
	defer cancel()
	e, err := s.capper.Explain(ctx, user)
	if err != nil {
		return failure.OfStore(ctx, err)
	}
	told := explanationOf(user, e)
	if e.Policy.UsesZones() || len(s.capper.Segments().Zones()) > 0 {
		told.Timezone = e.Zone.String()
	}
	return writeJSON(c.w, told)
}

func explanationOf(user capping.UserID, e *capping.Explanation) *api.Explanation {
	told := &api.Explanation{
		UserID: user, Segment: answer.SegmentName(e.Segment), Generation: e.Generation, ConfigVersion: e.Policy.Version,
		Limits: []api.Standing{}, Sends: []api.Send{},
	}
	for _, standing := range e.Standings {
		row := api.Standing{Limit: limitOf(standing.Limit, e.Policy), Used: standing.Used}
		if at := standing.FreesAt; at > 0 && at < capping.Never {
			row.RetryAt = pointerTo(at.Time())
		}
		told.Limits = append(told.Limits, row)
		if standing.Limit.Shadow && standing.FreesAt > 0 {
			told.WouldBeDeniedBy = append(told.WouldBeDeniedBy, standing.Limit.Name)
		}
	}
	tellWithheld(told, e)
	for _, entry := range e.Log.Entries() {
		row := api.Send{At: entry.At.Time()}
		if entry.Channel != 0 {
			row.Channel = pointerTo(e.Policy.ChannelName(entry.Channel))
		}
		if message, ok := e.Messages[entry.Token]; ok {
			row.Namespace, row.MessageID = &message.Namespace, &message.ID
		}
		told.Sends = append(told.Sends, row)
	}
	return told
}

// tellWithheld tells what withholds sends from the user, whatever the log says.
func tellWithheld(told *api.Explanation, e *capping.Explanation) {
	for _, suppression := range e.Suppressed {
		told.Suppressed = append(told.Suppressed, suppressionOf(suppression, e.Policy))
	}
	if e.HeldOut {
		told.Holdout = holdoutOf(e.Policy)
	}
	for _, standing := range e.Quiet {
		row := api.QuietStanding{Quiet: quietOf(standing.Quiet, e.Policy), Now: standing.On}
		if standing.On && standing.Until < capping.Never {
			row.Until = pointerTo(standing.Until.Time())
		}
		told.Quiet = append(told.Quiet, row)
	}
}

func pointerTo[T any](v T) *T { return &v }

// erase serves DELETE /v1/users/{id}.
func (s *Server) erase(c *call) error {
	user, err := userID(c.id)
	if err != nil {
		return err
	}
	ctx, cancel := s.callContext(c.r, 1)
	defer cancel()
	if err := s.capper.Erase(ctx, user); err != nil {
		s.audit(c, "erase", "failed", "user_id", user)
		return failure.OfStore(ctx, err)
	}
	s.audit(c, "erase", "done", "user_id", user)
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}
