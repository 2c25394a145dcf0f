package api

import "time"

// MaxReason is how many bytes a reason may have.
const MaxReason = 500

// AcceptRequest is the body of POST /v1/store/accept.
type AcceptRequest struct {
	Reason string `json:"reason"` // 1 to MaxReason bytes: what was looked at
}

// Accepted is the answer to POST /v1/store/accept.
type Accepted struct {
	Losses []AcceptedLoss `json:"losses"` // empty: nothing was to accept
}

// AcceptedLoss is what one server did. Users whose logs it dropped may receive more than their limits.
type AcceptedLoss struct {
	Node       string    `json:"node"`
	Reason     string    `json:"reason"` // "policy", "evicted" or "append_only"
	What       string    `json:"what"`
	Since      time.Time `json:"since"`
	Partitions int       `json:"partitions"` // of 64, and that of the store's records
}
