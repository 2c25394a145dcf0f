package api

import "time"

// ImportRequest is the body of POST /v1/sends, which imports sends that another system made. Each imported send in an
// ImportRequest has its own time.
type ImportRequest struct {
	MessageID string         `json:"message_id,omitempty"` // message id of sends without their own
	Channel   string         `json:"channel,omitempty"`    // channel of sends without their own
	Sends     []ImportedSend `json:"sends"`
}

// ImportedSend is one send that another system made.
type ImportedSend struct {
	UserID  uint32    `json:"user_id"`
	At      time.Time `json:"at"`                // precise to the millisecond
	Channel string    `json:"channel,omitempty"` // "": the channel of the request
	// "": the id of the request; if that is absent too, the time identifies the send
	MessageID string `json:"message_id,omitempty"`
}

// ImportAnswer is the response to POST /v1/sends.
type ImportAnswer struct {
	Unavailable []uint32      `json:"unavailable"` // users with an unknown result: import their sends again
	Summary     ImportSummary `json:"summary"`
}

// ImportSummary holds the number of an import's sends by result, such as recorded or too old.
type ImportSummary struct {
	Requested   int `json:"requested"`
	Added       int `json:"added"`
	Known       int `json:"known"`       // sends that were already stored, or that newer sends displaced
	Expired     int `json:"expired"`     // sends that are too old to be kept: no limit counts them
	Unavailable int `json:"unavailable"` // sends with an unknown result: import these sends again
}

// The method Add adds the counts in the summary of another import to the receiver s.
func (s *ImportSummary) Add(batch *ImportSummary) {
	s.Requested += batch.Requested
	s.Added += batch.Added
	s.Known += batch.Known
	s.Expired += batch.Expired
	s.Unavailable += batch.Unavailable
}
