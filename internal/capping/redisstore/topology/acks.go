package topology

import (
	"fmt"
	"strconv"
)

// Acks is how many replicas must hold a send before it is answered Allowed.
// The zero value is Healthy.
type Acks int

// Healthy asks every replica of the user's master that the cluster does not
// flag as failed, and never fewer than one.
const Healthy Acks = 0

// FixedAcks asks n replicas, whatever their state; 0, for servers without
// replicas, gives up that an allowed send survives the loss of a master.
func FixedAcks(n int) Acks { return Acks(n + 1) }

// ParseAcks reads "healthy" or a number from 0 to 5.
func ParseAcks(text string) (Acks, error) {
	if text == "healthy" {
		return Healthy, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > 5 {
		return 0, fmt.Errorf(`replica_acks: must be "healthy" or a number from 0 to 5, got %q`, text)
	}
	return FixedAcks(n), nil
}

// String is the text that ParseAcks reads.
func (a Acks) String() string {
	if a == Healthy {
		return "healthy"
	}
	return strconv.Itoa(a.fixed())
}

// Validate refuses numbers that FixedAcks does not make of 0 to 5.
func (a Acks) Validate() error {
	if a < Healthy || a > FixedAcks(5) {
		return fmt.Errorf("replica_acks: must be healthy or 0 to 5, got %d", a.fixed())
	}
	return nil
}

// None reports whether no replica is asked.
func (a Acks) None() bool { return a == FixedAcks(0) }

// fixed is the number of a fixed count.
func (a Acks) fixed() int { return int(a) - 1 }
