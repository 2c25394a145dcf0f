package capping

import "golang.org/x/time/rate"

// BulkUsers is the number of users from which a call's message id is always
// remembered.
const BulkUsers = 100

// MessageMemory decides which message ids a store remembers, so that a person
// who reads a log sees ids and not tokens. Ids of bulk calls (BulkUsers or
// more) always are. Of smaller calls at most 10 a second are, 1,000 in a
// burst: an id for each single user would cost more than the logs.
// It is safe for concurrent use.
type MessageMemory struct{ small *rate.Limiter }

// NewMessageMemory is a memory with a full burst.
func NewMessageMemory() *MessageMemory {
	return &MessageMemory{rate.NewLimiter(10, 1000)}
}

// Keep reports whether the store should remember the batch's message id.
func (m *MessageMemory) Keep(b *Batch) bool {
	if !b.Record || b.MessageID == "" {
		return false
	}
	return len(b.Users) >= BulkUsers || m.small.Allow()
}
