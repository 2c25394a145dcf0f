package redisstore

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
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

// fixed is the number of a fixed count.
func (a Acks) fixed() int { return int(a) - 1 }

// none reports whether no replica is asked.
func (a Acks) none() bool { return a == FixedAcks(0) }

// Config of a store. Addrs is required; zero values of the rest have the
// defaults that are named.
type Config struct {
	// Addrs are host:port of some nodes of a cluster, of a standalone server
	// (and its replicas: the master among them is used), or, with
	// SentinelMaster, of Sentinels.
	Addrs          []string
	SentinelMaster string // name of the master that the Sentinels watch; "": no Sentinel
	Username       string
	Password       string      // never logged
	TLS            *tls.Config // nil: plain TCP
	// Credentials is asked for user and password at every new connection, for
	// passwords that change. Nil: Username and Password.
	Credentials func() (username, password string, err error)

	ReplicaAcks Acks          // default Healthy
	ClockSkew   time.Duration // nodes whose clock differs by more refuse calls; 0: no guard
	Namespace   string        // prefix of every key; default "fc"
	// WithoutAppendOnly takes servers whose append-only file is off. They must
	// never be restarted empty under their old name and address: a managed
	// service that replaces lost nodes by copies of their replicas does so.
	WithoutAppendOnly bool

	// MustExist: refuse to begin anew where nothing is recorded, or where some
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

	// dial replaces the dialer in tests that stand between store and server.
	dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

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
		faults = append(faults, errors.New("addrs: must name at least one host:port"))
	}
	if c.Username != "" && c.Password == "" && c.Credentials == nil {
		faults = append(faults, fmt.Errorf("username: %q has no password, and without one Redis takes the user default: "+
			"set one (any will do for a user who needs none)", c.Username))
	}
	if c.ClockSkew < 0 || c.ClockSkew > time.Hour {
		faults = append(faults, fmt.Errorf("clock_skew: must be from 0 to 1h, got %v", c.ClockSkew))
	}
	if c.ReplicaAcks < Healthy || c.ReplicaAcks > FixedAcks(5) {
		faults = append(faults, fmt.Errorf("replica_acks: must be healthy or 0 to 5, got %d", c.ReplicaAcks.fixed()))
	}
	if c.AttemptTimeout < 10*time.Millisecond {
		faults = append(faults, fmt.Errorf("attempt timeout: must be at least 10ms, got %v", c.AttemptTimeout))
	}
	return errors.Join(faults...)
}

// waitMillis is how long WAIT blocks: well below the time of an attempt, which
// is the socket's deadline for the whole pipeline.
func (c *Config) waitMillis() int64 { return max(1, (c.AttemptTimeout / 2).Milliseconds()) }
