package api

// PermitsReturn is the body of POST /v1/permits/return, with which a sender gives unused permits back. A
// PermitsReturn contains the request that took the permits, with its RequestID, and the number of permits that were
// used.
type PermitsReturn struct {
	PermitsRequest
	// Used is the number of permits, the earliest first, that the caller has used or may still use. If Used is 0, the
	// caller gives back every permit whose slot (start time) is in the future.
	Used int `json:"used,omitempty"`
}

// PermitsReturned is the response to POST /v1/permits/return: the number of permits that went back to the pacers.
type PermitsReturned struct {
	Returned int `json:"returned"` // permits that the request gave back; nobody may use them
	Kept     int `json:"kept"`     // permits of the request that did not go back: used, or the slot has passed
	// Remembered is false if the service does not know the request id, or has forgotten it. If Remembered is false, no
	// permit went back.
	Remembered bool            `json:"remembered"`
	Pacers     []PacerReturned `json:"pacers"` // in the order of the request
}

// PacerReturned is the number of slots (start times of sends) of one pacer that are free again after a client gave
// permits back. If the pacer was reset after the grant, fewer slots become free than permits were returned. A slot that
// the pacer cannot remove from its log stays in use until its start time has passed.
type PacerReturned struct {
	Name     string `json:"name"`
	Returned int    `json:"returned"`
}
