package live

import "capper/internal/capping"

// Record is what a store keeps of a call: the changes of one set by one client.
type Record struct {
	Set, By string
	Runs    []Run
}

// Run holds the users who were added and removed at one instant, in ascending order.
type Run struct {
	At          capping.Instant
	Add, Remove []capping.UserID
}
