package api

// PermitsReturn is the body of POST /v1/permits/return: the request that took the permits, with its RequestID, and the
// number of permits that were used.
type PermitsReturn struct {
	PermitsRequest
	// Used is the number of permits, the earliest first, that stay: they were used, or may still be used. 0 gives back
	// every permit whose slot is ahead.
	Used int `json:"used,omitempty"`
}

// PermitsReturned is the answer to POST /v1/permits/return.
type PermitsReturned struct {
	Returned int `json:"returned"` // permits that the request gave back; nobody may use them
	Kept     int `json:"kept"`     // permits that it still has: the used ones, and those whose slot has passed
	// Remembered is false when the request id is not known, or not any more: nothing went back.
	Remembered bool            `json:"remembered"`
	Pacers     []PacerReturned `json:"pacers"` // in the order of the request
}

// PacerReturned is the number of slots of one pacer that a return made free again. The number is below the number of
// returned permits if the pacer was reset in the meantime, or if the pacer's log cannot remove some slots. A slot that
// the log cannot remove counts until its time has passed.
type PacerReturned struct {
	Name     string `json:"name"`
	Returned int    `json:"returned"`
}
