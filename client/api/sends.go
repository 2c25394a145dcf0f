package api

import "time"

// ImportRequest is the body of POST /v1/sends: sends that another system made, with their own times.
type ImportRequest struct {
	MessageID string         `json:"message_id,omitempty"` // of the sends that name none
	Channel   string         `json:"channel,omitempty"`    // of the sends that name none
	Sends     []ImportedSend `json:"sends"`
}

// ImportedSend is one send that another system made.
type ImportedSend struct {
	UserID  uint32    `json:"user_id"`
	At      time.Time `json:"at"`                // to the millisecond
	Channel string    `json:"channel,omitempty"` // "": that of the request
	// "": that of the request; where that has none either, the time names the send
	MessageID string `json:"message_id,omitempty"`
}

// ImportAnswer is the answer to POST /v1/sends.
type ImportAnswer struct {
	Unavailable []uint32      `json:"unavailable"` // users of whom it is not known: import their sends again
	Summary     ImportSummary `json:"summary"`
}

// ImportSummary counts the sends of an import.
type ImportSummary struct {
	Requested   int `json:"requested"`
	Added       int `json:"added"`
	Known       int `json:"known"`       // were there already, or had no room beside as many newer ones as are kept
	Expired     int `json:"expired"`     // older than what is kept: no limit sees them
	Unavailable int `json:"unavailable"` // not known: import them again
}

// Add adds the counts of another batch.
func (s *ImportSummary) Add(batch *ImportSummary) {
	s.Requested += batch.Requested
	s.Added += batch.Added
	s.Known += batch.Known
	s.Expired += batch.Expired
	s.Unavailable += batch.Unavailable
}
