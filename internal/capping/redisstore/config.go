package redisstore

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"
	"unicode"

	"github.com/prometheus/client_golang/prometheus"

	"capper/internal/capping/redisstore/dispatch"
	"capper/internal/capping/redisstore/fault"
	"capper/internal/capping/redisstore/script"
	"capper/internal/capping/redisstore/topology"
)

// Acks is the number of replicas that must confirm a send before the store returns Allowed. The zero Acks is Healthy.
type Acks = topology.Acks

// Healthy means that every replica of the user's master must confirm a send, except the replicas that the cluster flags
// as failed. With Healthy, at least one replica must confirm the send.
const Healthy = topology.Healthy

// FixedAcks requires confirmation by n replicas, even if the cluster flags replicas as failed. FixedAcks(0) is for
// servers without replicas. With FixedAcks(0), the loss of a master may lose allowed sends.
func FixedAcks(n int) Acks { return topology.FixedAcks(n) }

// ParseAcks parses "healthy" or a number from 0 to 5.
func ParseAcks(text string) (Acks, error) { return topology.ParseAcks(text) }

// A HintedError is an error of Open with a hint for the operator.
type HintedError = topology.HintedError

// IsAuth reports whether the error says that a server rejected the user name or the password.
func IsAuth(err error) bool { return fault.IsAuth(err) }

// Config is the configuration of a Redis store. The field Addrs is required. For every other field, the zero value
// means the default in the comment of the field.
type Config struct {
	// Addrs (addrs) lists the host:port of some nodes of a cluster. For servers outside a cluster, Addrs lists a master
	// and its replicas, and the store finds the master. With SentinelMaster, Addrs lists Redis Sentinels.
	Addrs          []string
	SentinelMaster string      // sentinel_master: name of the master that Redis Sentinel watches; "": no Sentinel
	Username       string      // username
	Password       string      // never logged
	TLS            *tls.Config // nil: plain TCP
	// Authorities returns the trusted certificate authorities at every new connection, so that an operator can change
	// them. If Authorities is nil, the authorities in TLS apply.
	Authorities func() (*x509.CertPool, error)
	// Credentials returns the user name and the password at every new connection, so that an operator can change them.
	// If Credentials is nil, the fields Username and Password apply.
	Credentials func() (username, password string, err error)

	ReplicaAcks Acks // replica_acks: default Healthy
	// ClockSkew (clock_skew) is the largest tolerated difference between clocks, up to MaxClockSkew. A node whose clock
	// differs by more rejects calls. If ClockSkew is 0, clocks are not checked.
	ClockSkew time.Duration
	Namespace string // prefix of every key; default "fc"
	IDs       IDs    // the ids of the users; default: dense
	// WithoutAppendOnly (allow_no_append_only) accepts servers whose append-only file is off. A server without an
	// append-only file must never restart empty under its old name and address. A managed service that replaces a lost
	// node by a copy of a replica meets this condition.
	WithoutAppendOnly bool

	// MustExist (create: false) makes Open return an error if shared records of the store are missing. If MustExist is
	// false, Open creates the missing records and logs a warning.
	MustExist bool

	// Timeout is the deadline of a call whose context has none; the default is 10 s.
	Timeout time.Duration
	// AttemptTimeout, plus the time of four round trips, is the time limit of one pipeline to one node. The default is
	// 1 s. If a command has no reply within AttemptTimeout, the store retries the command.
	AttemptTimeout time.Duration

	Clock      func() time.Time      // default time.Now
	Logger     *slog.Logger          // default: discard
	Registerer prometheus.Registerer // nil: no metrics

	// certificatesEvery is the interval between two checks of the servers' TLS certificates; 0 means the topology's
	// default.
	certificatesEvery time.Duration
	// The function "dial" replaces the dialer in tests with a proxy between the store and a server.
	dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// IDs describes the user ids of a store. A store always keeps its kind of ids, and the key that makes id images (64-bit
// numbers that stand for ids). Open rejects a store with another kind of ids or another key. The zero IDs means dense
// ids (32-bit integers), the numbers from 0 to 4294967295.
type IDs struct {
	Kind string // the name of the kind in the format marker, such as "uuid"; "" and "dense": dense
	// Check is a fingerprint of the kind of ids and of the key that makes id images. The store rejects a configuration
	// with another Check, and so with another key. Check is required for every kind except dense.
	Check string
	// Users is the expected number of users. A new store chooses the size of its buckets by this number. An error by a
	// factor of up to four costs little extra memory. The value 0 means that the number of users is not known. An
	// existing store keeps the size of its buckets.
	Users int
}

// denseIDs is the kind of ids that are numbers from 0 to 4294967295.
const denseIDs = "dense"

func (i IDs) isDense() bool { return i.Kind == "" || i.Kind == denseIDs }

// The method "layout" returns the keyspace (distribution of users over Redis keys) and the possible versions of the
// stored format, for a new store with these ids.
func (i IDs) layout() (script.Keyspace, script.Formats) {
	if i.isDense() {
		return script.Standard, script.Known
	}
	return script.Spread(script.DepthFor(i.Users)), script.SpreadKnown
}

// The method "marked" returns the kind of ids and the check word of the ids' key, as the format marker holds them.
func (i IDs) marked() script.IDs {
	if i.isDense() {
		return script.IDs{}
	}
	return script.IDs{Kind: i.Kind, Check: i.Check}
}

func (i IDs) validate() error {
	for name, text := range map[string]string{"kind": i.Kind, "check": i.Check} {
		if strings.ContainsFunc(text, unicode.IsSpace) {
			return fmt.Errorf("ids: %s must be one word, got %q", name, text)
		}
	}
	if !i.isDense() && i.Check == "" {
		return fmt.Errorf(
			"ids: the field 'check' (fingerprint of the key for hashing ids) must be set for ids of the kind %s",
			i.Kind)
	}
	return nil
}

// DefaultClockSkew is the tolerated clock difference if the configuration sets none. MaxClockSkew is the largest
// tolerated clock difference.
const (
	DefaultClockSkew = 250 * time.Millisecond
	MaxClockSkew     = time.Minute
)

func (c Config) withDefaults() (Config, error) {
	c.Namespace = cmp.Or(c.Namespace, "fc")
	c.Timeout = cmp.Or(c.Timeout, 10*time.Second)
	c.AttemptTimeout = cmp.Or(c.AttemptTimeout, time.Second)
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c, c.validate()
}

func (c *Config) validate() error {
	var faults []error
	if len(c.Addrs) == 0 {
		faults = append(faults, errors.New("addrs: must contain the host:port of at least one Redis server"))
	}
	if c.Username != "" && c.Password == "" && c.Credentials == nil {
		faults = append(faults, fmt.Errorf(
			"username %q has no password, so Redis would use the user 'default' instead: "+
				"set a password (any text if the user needs none)", c.Username))
	}
	if c.ClockSkew < 0 || c.ClockSkew > MaxClockSkew {
		faults = append(faults, fmt.Errorf("clock_skew: must be from 0 to %v, got %v", MaxClockSkew, c.ClockSkew))
	}
	faults = append(faults, c.ReplicaAcks.Validate(), c.IDs.validate())
	if c.AttemptTimeout < 10*time.Millisecond {
		faults = append(faults, fmt.Errorf(
			"the timeout of one attempt to reach Redis must be at least 10ms, got %v", c.AttemptTimeout))
	}
	return errors.Join(faults...)
}

// The method "topology" returns the part of the configuration that package topology needs: the settings for the
// servers.
func (c *Config) topology(partitions []topology.Partition, hashFields int, scripts []string) topology.Config {
	return topology.Config{
		Options: topology.Options{
			Addrs: c.Addrs, SentinelMaster: c.SentinelMaster, Username: c.Username, Password: c.Password,
			TLS: c.TLS, Authorities: c.Authorities, Credentials: c.Credentials, AttemptTimeout: c.AttemptTimeout,
			Connections: poolSize, Dial: c.dial,
			Shown: new(topology.Shown),
		},
		CertificatesEvery: c.certificatesEvery,
		ReplicaAcks:       c.ReplicaAcks, ClockSkew: c.ClockSkew, WithoutAppendOnly: c.WithoutAppendOnly,
		Namespace: c.Namespace, HashFields: hashFields, Partitions: partitions, Scripts: scripts,
		Clock: c.Clock, Logger: c.Logger,
	}
}

// poolSize is the number of connections to each node: one for each lane (worker) of the dispatcher, and four for
// questions about the cluster.
const poolSize = dispatch.Lanes + 4

// waitForAcks returns the time limit of the command WAIT, which waits until replicas confirm a write: half of
// AttemptTimeout, because AttemptTimeout limits the whole pipeline.
func (c *Config) waitForAcks() time.Duration { return max(time.Millisecond, c.AttemptTimeout/2) }
