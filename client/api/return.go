package api

// PermitsReturn is the body of POST /v1/permits/return. The body contains the request that took the permits, with its
// RequestID, and the number of permits that were used.
type PermitsReturn struct {
	PermitsRequest
	// Used is the number of permits that the request keeps, the earliest permits first: the caller used them, or may
	// still use them. If Used is 0, the request gives back every permit whose slot is in the future.
	Used int `json:"used,omitempty"`
}

// PermitsReturned is the response to POST /v1/permits/return.
type PermitsReturned struct {
	Returned int `json:"returned"` // permits that the request gave back; nobody may use them
	Kept     int `json:"kept"`     // permits that it still has: the used ones, and those whose slot has passed
	// Remembered is false if the service does not know the request id, or has forgotten it. Then the request gives back
	// nothing.
	Remembered bool            `json:"remembered"`
	Pacers     []PacerReturned `json:"pacers"` // in the order of the request
}

// PacerReturned is the number of slots of one pacer that a return of permits freed. The number of freed slots is below
// the number of returned permits if the pacer was reset after the grant, or if the pacer's log cannot remove some
// slots. A slot that the log cannot remove counts until its time has passed.
type PacerReturned struct {
	Name     string `json:"name"`
	Returned int    `json:"returned"`
}
