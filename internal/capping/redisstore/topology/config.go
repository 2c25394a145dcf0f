package topology

import (
	"fmt"
	"log/slog"
	"strconv"
	"time"
)

// Config of a Topology. Everything is required but where Options say otherwise.
type Config struct {
	Options

	ReplicaAcks       Acks
	ClockSkew         time.Duration // that is tolerated between machines; 0: no guard
	WithoutAppendOnly bool          // servers may have their append-only file off

	CertificatesEvery time.Duration // how often servers are asked for their certificates; 0: 30 s

	Namespace  string      // prefix of every key
	HashFields int         // of the largest hash that has to stay compact
	Partitions []Partition // by number; users know theirs
	// UserPartitions are how many of them, from the first on, have users. 0: all.
	UserPartitions int
	// LedgerCopies are the partitions that hold a copy of the ledger of broken promises: on several nodes.
	LedgerCopies []int
	Scripts      []string // sources that every server should have at hand

	Clock  func() time.Time
	Logger *slog.Logger
}

// Partition is a share of the keys that lies in one slot.
type Partition struct {
	Slot   int
	Prefix string // of its keys: the namespace and a hash tag of the slot
}

// signKey is the key of the partition's sign: a dash is in no bucket's name.
func (p *Partition) signKey() string { return p.Prefix + "-sign" }

// markKey is the key of the partition's mark.
func (p *Partition) markKey() string { return p.Prefix + "-mark" }

// signKeys are the keys of sign.lua.
func (p *Partition) signKeys() []string { return []string{p.signKey(), p.markKey()} }

// trialKey is a key that nobody uses: buckets have no capital letters.
func (p *Partition) trialKey() string { return p.Prefix + "RIGHTS" }

// rules are what every server has to keep.
func (c *Config) rules() *Rules {
	return &Rules{
		Namespace: c.Namespace, Username: c.Username, HashFields: c.HashFields,
		Unreplicated: c.ReplicaAcks.None(), CountedReplicas: c.ReplicaAcks == Healthy,
		WithoutAppendOnly: c.WithoutAppendOnly,
		ClockSkew:         c.ClockSkew, Clock: c.Clock,
	}
}

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
