package server

import (
	"net/http"

	"capper/client/api"
	"capper/internal/capping"
	"capper/internal/server/answer"
	"capper/internal/server/decode"
	"capper/internal/server/failure"
)

type explainAnswer struct {
	UserID        capping.UserID   `json:"user_id"`
	Segment       string           `json:"segment"`
	Generation    string           `json:"generation"`
	ConfigVersion string           `json:"config_version"`
	Limits        []standingAnswer `json:"limits"`
	Sends         []sendAnswer     `json:"sends"`
}

type standingAnswer struct {
	limitAnswer
	Used    int     `json:"used"`
	RetryAt *string `json:"retry_at"` // null: a slot is free now, or max is 0
}

type sendAnswer struct {
	At        string  `json:"at"`
	Channel   *string `json:"channel"`    // null: sent without one
	Namespace *string `json:"namespace"`  // null: not remembered; "": of keys without one
	MessageID *string `json:"message_id"` // null: not remembered
}

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
		return failure.OfStore(err)
	}
	return writeJSON(c.w, explanationOf(user, e))
}

func explanationOf(user capping.UserID, e *capping.Explanation) *explainAnswer {
	names := channelNames(e.Policy)
	told := &explainAnswer{
		UserID: user, Segment: answer.SegmentName(e.Segment), Generation: e.Generation, ConfigVersion: e.Policy.Version,
		Limits: []standingAnswer{}, Sends: []sendAnswer{},
	}
	for _, standing := range e.Standings {
		row := standingAnswer{limitAnswer: limitOf(standing.Limit, names), Used: standing.Used}
		if at := standing.FreesAt; at > 0 && at < capping.Never {
			row.RetryAt = pointerTo(instantText(at))
		}
		told.Limits = append(told.Limits, row)
	}
	for _, entry := range e.Log.Entries() {
		row := sendAnswer{At: instantText(entry.At)}
		if entry.Channel != 0 {
			row.Channel = pointerTo(channelName(names, entry.Channel))
		}
		if message, ok := e.Messages[entry.Token]; ok {
			row.Namespace, row.MessageID = &message.Namespace, &message.ID
		}
		told.Sends = append(told.Sends, row)
	}
	return told
}

func instantText(at capping.Instant) string { return at.Time().Format(api.Milliseconds) }

func pointerTo(s string) *string { return &s }

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
		return failure.OfStore(err)
	}
	s.audit(c, "erase", "done", "user_id", user)
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}
