package api

import "time"

// MaxReason is the maximum length, in bytes, of the reason that an operator gives in AcceptRequest.Reason.
const MaxReason = 500

// AcceptRequest is the body of POST /v1/store/accept, with which an operator accepts that the store has lost recorded
// sends.
type AcceptRequest struct {
	Reason string `json:"reason"` // 1 to MaxReason bytes: the operator's reason
}

// The type Accepted is the response to POST /v1/store/accept: the losses of recorded sends that the call accepted.
type Accepted struct {
	Losses []AcceptedLoss `json:"losses"` // empty: there was no loss to accept
}

// AcceptedLoss describes a loss of recorded sends, on one Redis server, that an operator accepted. Users whose recorded
// sends were lost may receive more messages than their limits allow.
type AcceptedLoss struct {
	Node       string    `json:"node"`
	Reason     string    `json:"reason"` // "policy", "evicted" or "append_only"
	What       string    `json:"what"`
	Since      time.Time `json:"since"`
	Partitions int       `json:"partitions"` // number of affected partitions, out of 64 for users and 1 for store records
}
