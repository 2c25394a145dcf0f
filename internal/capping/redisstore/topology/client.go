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

// Client returns a client of the server at addr, or of the Sentinel master when SentinelMaster is set. The contexts of
// calls limit each attempt at a request, so that a distant server gets more time. On each new connection, the client
// calls started with the server's run id; started may be nil.
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

// DirectClient returns a client of the server at addr. The client of DirectClient never asks a Sentinel for the
// address.
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

// askRun returns a connection hook that reads the server's run id, a random number that a Redis server draws at each
// start.
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

// dialTimeout returns the time limit for opening one connection, including its handshake.
func (o *Options) dialTimeout() time.Duration { return 2 * o.AttemptTimeout }

// credentials adapts Credentials to the signature that the Redis library expects.
func (o *Options) credentials() func(context.Context) (string, string, error) {
	if o.Credentials == nil {
		return nil
	}
	return func(context.Context) (string, string, error) { return o.Credentials() }
}

// Exec sends the commands of a pipeline; each command then holds its own error. Exec returns an error only if the
// server refused the connection, for example for a wrong password. If Exec returns an error, the library sent no
// command and stored no error in the commands.
func Exec(ctx context.Context, pipe redis.Pipeliner) error {
	commands, err := pipe.Exec(ctx)
	for _, command := range commands {
		if command.Err() != nil {
			return nil
		}
	}
	return err
}

// silenceLibrary turns off the Redis library's own log. The library writes its log to standard error, and the log only
// repeats errors that calls return.
var silenceLibrary = sync.OnceFunc(func() { redis.SetLogger(silence{}) })

type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}
