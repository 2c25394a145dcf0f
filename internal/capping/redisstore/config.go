package redisstore

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"capper/internal/capping/redisstore/dispatch"
	"capper/internal/capping/redisstore/fault"
	"capper/internal/capping/redisstore/topology"
)

// Acks is how many replicas must hold a send before it is answered Allowed.
// The zero value is Healthy.
type Acks = topology.Acks

// Healthy asks every replica of the user's master that the cluster does not
// flag as failed, and never fewer than one.
const Healthy = topology.Healthy

// FixedAcks asks n replicas, whatever their state; 0, for servers without
// replicas, gives up that an allowed send survives the loss of a master.
func FixedAcks(n int) Acks { return topology.FixedAcks(n) }

// ParseAcks reads "healthy" or a number from 0 to 5.
func ParseAcks(text string) (Acks, error) { return topology.ParseAcks(text) }

// HintedError is why a store cannot be opened, with what an operator can do
// about it.
type HintedError = topology.HintedError

// IsAuth reports whether a server refused the user or the password.
func IsAuth(err error) bool { return fault.IsAuth(err) }

// Config of a store. Addrs is required; zero values of the rest have the
// defaults that are named.
type Config struct {
	// Addrs (addrs) are host:port of some nodes of a cluster, of a standalone server
	// (and its replicas: the master among them is used), or, with
	// SentinelMaster, of Sentinels.
	Addrs          []string
	SentinelMaster string      // sentinel_master: name of the master that the Sentinels watch; "": no Sentinel
	Username       string      // username
	Password       string      // never logged
	TLS            *tls.Config // nil: plain TCP
	// Authorities is asked at every new connection whose certificates are
	// believed, for authorities that change. Nil: those of TLS.
	Authorities func() (*x509.CertPool, error)
	// Credentials is asked for user and password at every new connection, for
	// passwords that change. Nil: Username and Password.
	Credentials func() (username, password string, err error)

	ReplicaAcks Acks // replica_acks: default Healthy
	// clock_skew: nodes whose clock differs by more refuse calls, up to MaxClockSkew; 0: no guard
	ClockSkew time.Duration
	Namespace string // prefix of every key; default "fc"
	// WithoutAppendOnly (allow_no_append_only) takes servers whose append-only file is off. They must
	// never be restarted empty under their old name and address: a managed
	// service that replaces lost nodes by copies of their replicas does so.
	WithoutAppendOnly bool

	// MustExist (create: false): refuse to begin anew where nothing is recorded, or where some
	// of what was is lost. Without it a start does, and says so.
	MustExist bool

	// Timeout bounds calls whose context has no deadline; default 10 s.
	Timeout time.Duration
	// AttemptTimeout bounds one pipeline to one node, with four round trips on
	// top: what has no reply by then is unknown and is sent again; default 1 s.
	AttemptTimeout time.Duration

	Clock      func() time.Time      // default time.Now
	Logger     *slog.Logger          // default: discard
	Registerer prometheus.Registerer // nil: no metrics

	// certificatesEvery is how often servers are asked for their certificates; 0: the topology's default.
	certificatesEvery time.Duration
	// dial replaces the dialer in tests that stand between store and server.
	dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// DefaultClockSkew is the tolerance of a store of which nothing else is said;
// MaxClockSkew the largest.
const (
	DefaultClockSkew = 250 * time.Millisecond
	MaxClockSkew     = time.Minute
)

func (c Config) withDefaults() (Config, error) {
	if c.Namespace == "" {
		c.Namespace = "fc"
	}
	if c.Timeout == 0 {
		c.Timeout = 10 * time.Second
	}
	if c.AttemptTimeout == 0 {
		c.AttemptTimeout = time.Second
	}
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
		faults = append(faults, errors.New("addrs: must contain at least one host:port"))
	}
	if c.Username != "" && c.Password == "" && c.Credentials == nil {
		faults = append(faults, fmt.Errorf("username: %q has no password, and Redis would use the user default "+
			"instead: set a password (any text if the user needs none)", c.Username))
	}
	if c.ClockSkew < 0 || c.ClockSkew > MaxClockSkew {
		faults = append(faults, fmt.Errorf("clock_skew: must be from 0 to %v, got %v", MaxClockSkew, c.ClockSkew))
	}
	faults = append(faults, c.ReplicaAcks.Validate())
	if c.AttemptTimeout < 10*time.Millisecond {
		faults = append(faults, fmt.Errorf("attempt timeout: must be at least 10ms, got %v", c.AttemptTimeout))
	}
	return errors.Join(faults...)
}

// topology is the part of the configuration that is about servers.
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

// poolSize leaves room beside the lanes for questions about the cluster.
const poolSize = dispatch.Lanes + 4

// waitForAcks is how long WAIT blocks: well below the time of an attempt, which
// is the socket's deadline for the whole pipeline.
func (c *Config) waitForAcks() time.Duration { return max(time.Millisecond, c.AttemptTimeout/2) }
