package topology

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Options says how to connect to Redis servers.
type Options struct {
	// Addrs are the host:port addresses of the nodes, or of the Sentinels when SentinelMaster is
	// set.
	Addrs          []string
	SentinelMaster string // the name by which Sentinel knows the master; "": no Sentinel
	Username       string
	Password       string
	TLS            *tls.Config // nil: plain TCP
	// Authorities returns the trusted certificate authorities for each new connection. If Authorities is nil, the
	// authorities in TLS apply.
	Authorities func() (*x509.CertPool, error)
	// Credentials returns the user and password for each new connection. If Credentials is nil, Username and Password
	// apply.
	Credentials func() (username, password string, err error)

	// Shown records the TLS certificates that servers present. If Shown is nil, certificates are not recorded.
	Shown *Shown

	// AttemptTimeout is the time limit of one attempt at a request. Four round trips to the server are added to the
	// limit AttemptTimeout.
	AttemptTimeout time.Duration
	Connections    int // maximum number of connections to one server

	// Dial replaces the default dialer. If Dial is nil, the default dialer is used.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// Client returns a client of the server at addr, or of the Sentinel master when SentinelMaster is set. The client sets
// no time limits, because the contexts of calls limit each attempt, so that a distant server gets more time. On each
// new connection, the client calls the function in the argument "started" with the run id of the server. The argument
// "started" of Client may be nil.
func (o *Options) Client(addr string, trips *RoundTrips, started func(run string)) *redis.Client {
	silenceLibrary()
	if o.SentinelMaster != "" {
		return redis.NewFailoverClient(&redis.FailoverOptions{
			MasterName: o.SentinelMaster, SentinelAddrs: o.Addrs,
			Username: o.Username, Password: o.Password, CredentialsProviderContext: o.credentials(),
			Dialer: trips.dialThrough(o),
			// A dial asks the Sentinels first, so the limit leaves time for a second Sentinel if the first does not
			// answer.
			DialTimeout: 4 * o.AttemptTimeout, ReadTimeout: o.LongestAttempt(), WriteTimeout: o.LongestAttempt(),
			ContextTimeoutEnabled: true, MaxRetries: -1, DialerRetries: 1, Protocol: 2, DisableIdentity: true,
			PoolSize: o.Connections, OnConnect: askRun(started),
		})
	}
	return o.DirectClient(addr, trips, started)
}

// DirectClient returns a Redis client that connects to the server at addr. The client of DirectClient never asks a
// Sentinel for the address of a server.
func (o *Options) DirectClient(addr string, trips *RoundTrips, started func(run string)) *redis.Client {
	silenceLibrary()
	return redis.NewClient(&redis.Options{
		Addr: addr, Username: o.Username, Password: o.Password, CredentialsProviderContext: o.credentials(),
		Dialer:      trips.dialThrough(o),
		DialTimeout: o.dialTimeout(), ReadTimeout: o.LongestAttempt(), WriteTimeout: o.LongestAttempt(),
		ContextTimeoutEnabled: true, MaxRetries: -1, DialerRetries: 1, Protocol: 2, DisableIdentity: true,
		PoolSize:                 o.Connections,
		OnConnect:                askRun(started),
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
}

// askRun returns a function for new connections, which reads the server's run id (a random number that a Redis server
// draws when it starts).
func askRun(started func(run string)) func(context.Context, *redis.Conn) error {
	if started == nil {
		return nil
	}
	return func(ctx context.Context, conn *redis.Conn) error {
		text, err := conn.Info(ctx, "server").Result()
		var refused redis.Error
		if err != nil && !errors.As(err, &refused) {
			return err
		}
		// The library also connects to Sentinels in this way, and their run ids do not count.
		if facts := ParseInfo(text); facts["redis_mode"] != "sentinel" {
			started(facts["run_id"]) // "": the server hides its run id
		}
		return nil
	}
}

// dialTimeout returns how long the opening of one connection may take, including the handshake.
func (o *Options) dialTimeout() time.Duration { return 2 * o.AttemptTimeout }

// credentials converts the function Credentials to the form that the Redis library expects.
func (o *Options) credentials() func(context.Context) (string, string, error) {
	if o.Credentials == nil {
		return nil
	}
	return func(context.Context) (string, string, error) { return o.Credentials() }
}

// Exec sends the commands of a pipeline to the server. When Exec returns, each command of the pipeline has its own
// result or error. Exec returns an error only if the server rejected the connection, for example because of a wrong
// password. If Exec returns an error, the library has sent no command, and the commands have no errors of their own.
func Exec(ctx context.Context, pipe redis.Pipeliner) error {
	commands, err := pipe.Exec(ctx)
	for _, command := range commands {
		if command.Err() != nil {
			return nil
		}
	}
	return err
}

// silenceLibrary turns off the log that the Redis library writes. The log of the Redis library would go to standard
// error, and would only repeat errors that calls of the library also return.
var silenceLibrary = sync.OnceFunc(func() { redis.SetLogger(silence{}) })

type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}
