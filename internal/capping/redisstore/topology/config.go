package topology

import (
	"log/slog"
	"time"

	"capper/internal/capping/redisstore/topology/connect"
	"capper/internal/capping/redisstore/topology/examine"
)

// Config of a Topology. Everything is required but where Options say otherwise.
type Config struct {
	connect.Options

	ReplicaAcks       Acks
	ClockSkew         time.Duration // that is tolerated between machines; 0: no guard
	WithoutAppendOnly bool          // servers may have their append-only file off

	Namespace  string      // prefix of every key
	HashFields int         // of the largest hash that has to stay compact
	Partitions []Partition // by number; users know theirs
	Scripts    []string    // sources that every server should have at hand

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

// trialKey is a key that nobody uses: buckets have no capital letters.
func (p *Partition) trialKey() string { return p.Prefix + "RIGHTS" }

// rules are what every server has to keep.
func (c *Config) rules() *examine.Rules {
	return &examine.Rules{
		Namespace: c.Namespace, Username: c.Username, HashFields: c.HashFields,
		Unreplicated: c.ReplicaAcks.None(), WithoutAppendOnly: c.WithoutAppendOnly,
		ClockSkew: c.ClockSkew, Clock: c.Clock,
	}
}
