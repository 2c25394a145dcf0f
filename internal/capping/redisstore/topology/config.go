package topology

import (
	"fmt"
	"log/slog"
	"strconv"
	"time"
)

// Config is the configuration of a Topology. All fields of Config must be set, except fields that the comments describe
// as optional.
type Config struct {
	Options

	ReplicaAcks       Acks
	ClockSkew         time.Duration // tolerated clock difference between machines; 0: clocks are not checked
	WithoutAppendOnly bool          // servers may run without an append-only file

	CertificatesEvery time.Duration // interval for reading the servers' certificates; 0: 30 s

	Namespace  string      // prefix of every key
	HashFields int         // number of fields of the largest hash that Redis must keep in its compact encoding
	Partitions []Partition // by number; the caller assigns users to partitions
	// UserPartitions is the number of partitions that have users, counted from the first partition. 0 means that all
	// partitions have users.
	UserPartitions int
	// LedgerCopies lists the partitions that store a copy of the ledger (the list of promises that servers have
	// broken). The partitions with copies of the ledger are on several nodes.
	LedgerCopies []int
	Scripts      []string // sources of the scripts that every server should have loaded

	Clock  func() time.Time
	Logger *slog.Logger
}

// A Partition is a part of the store's keys. All keys of a partition are in one hash slot.
type Partition struct {
	Slot   int
	Prefix string // prefix of the partition's keys: the namespace, and a hash tag for the slot
}

// signKey returns the Redis key of a partition's sentinel key (a marker key that reveals lost data). A missing sentinel
// key means that the server was emptied. The dash in the name of a sentinel key prevents a collision with the key of a
// bucket of users.
func (p *Partition) signKey() string { return p.Prefix + "-sign" }

// markKey returns the Redis key of a partition's mark. The mark is a hash with the same time as the sentinel key (a
// marker key that reveals lost data).
func (p *Partition) markKey() string { return p.Prefix + "-mark" }

// signKeys returns the two Redis keys that sign.lua needs: the partition's sentinel key (a marker key that reveals lost
// data) and its mark.
func (p *Partition) signKeys() []string { return []string{p.signKey(), p.markKey()} }

// trialKey returns a Redis key without data, with which the store tests the rights of its Redis user. No bucket of
// users has the test key, because the names of buckets have no capital letters.
func (p *Partition) trialKey() string { return p.Prefix + "RIGHTS" }

// The method "rules" returns the requirements that every Redis server of the store must meet.
func (c *Config) rules() *Rules {
	return &Rules{
		Namespace: c.Namespace, Username: c.Username, HashFields: c.HashFields,
		Unreplicated: c.ReplicaAcks.None(), CountedReplicas: c.ReplicaAcks == Healthy,
		WithoutAppendOnly: c.WithoutAppendOnly,
		ClockSkew:         c.ClockSkew, Clock: c.Clock,
	}
}

// Acks is the number of replicas that must confirm a send before the store returns Allowed. The zero Acks is Healthy.
type Acks int

// Healthy means that every replica must confirm a send, except the replicas that the cluster flags as failed. With
// Healthy, at least one replica must confirm the send.
const Healthy Acks = 0

// FixedAcks means that n replicas must confirm a send, even if the cluster flags replicas as failed. FixedAcks(0) is
// for servers without replicas. With FixedAcks(0), the loss of a master may lose allowed sends.
func FixedAcks(n int) Acks { return Acks(n + 1) }

// ParseAcks parses the number of replicas that must confirm a send: "healthy", or a number from 0 to 5.
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

// String returns the text that ParseAcks accepts.
func (a Acks) String() string {
	if a == Healthy {
		return "healthy"
	}
	return strconv.Itoa(a.fixed())
}

// Validate returns nil if the Acks is Healthy, or FixedAcks of a number from 0 to 5. For other values, Validate returns
// an error.
func (a Acks) Validate() error {
	if a < Healthy || a > FixedAcks(5) {
		return fmt.Errorf("replica_acks: must be 'healthy' or a number from 0 to 5, got %d", a.fixed())
	}
	return nil
}

// The method None reports whether no replica has to confirm a send.
func (a Acks) None() bool { return a == FixedAcks(0) }

// The method "fixed" returns the number n of FixedAcks(n).
func (a Acks) fixed() int { return int(a) - 1 }
