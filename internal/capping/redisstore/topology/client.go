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

// Options holds the settings for connections to Redis servers.
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

	// AttemptTimeout, plus the time of four round trips to the server, is the time limit of one attempt at a request.
	AttemptTimeout time.Duration
	Connections    int // maximum number of connections to one server

	// Dial replaces the default dialer. If Dial is nil, the default dialer is used.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// The method Client returns a client of the server at addr, or of the Sentinel master if SentinelMaster is set. The
// contexts of calls limit each attempt, so that a distant server gets more time. On each new connection, the client
// calls the function "started" with the run id of the server. The argument "started" of Client may be nil.
func (o *Options) Client(addr string, trips *RoundTrips, started func(run string)) *redis.Client {
	silenceLibrary()
	if o.SentinelMaster != "" {
		return redis.NewFailoverClient(&redis.FailoverOptions{
			MasterName: o.SentinelMaster, SentinelAddrs: o.Addrs,
			Username: o.Username, Password: o.Password, CredentialsProviderContext: o.credentials(),
			Dialer: trips.dialThrough(o),
			// A dial asks the Sentinels first, so the limit leaves time for a second Sentinel if the first Sentinel
			// does not answer.
			DialTimeout: 4 * o.AttemptTimeout, ReadTimeout: o.LongestAttempt(), WriteTimeout: o.LongestAttempt(),
			ContextTimeoutEnabled: true, MaxRetries: -1, DialerRetries: 1, Protocol: 2, DisableIdentity: true,
			PoolSize: o.Connections, OnConnect: askRun(started),
		})
	}
	return o.DirectClient(addr, trips, started)
}

// DirectClient returns a Redis client that connects to the server at addr, without a Sentinel.
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

// askRun returns a function for new connections. The returned function reads the server's run id (a random text that a
// Redis server chooses at each start) and passes it to "started".
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
		// The library also calls this function for connections to Sentinels, but the function ignores the run ids of
		// Sentinels.
		if facts := ParseInfo(text); facts["redis_mode"] != "sentinel" {
			started(facts["run_id"]) // "": the server hides its run id
		}
		return nil
	}
}

// dialTimeout returns the time limit for the opening of one connection, including the handshake.
func (o *Options) dialTimeout() time.Duration { return 2 * o.AttemptTimeout }

// The method "credentials" converts the function Credentials to the form that the Redis library expects.
func (o *Options) credentials() func(context.Context) (string, string, error) {
	if o.Credentials == nil {
		return nil
	}
	return func(context.Context) (string, string, error) { return o.Credentials() }
}

// The function Exec sends the commands of a pipeline to the server. After Exec, each command of the pipeline has a
// result or an error. Exec returns an error only if the library could not send any command, for example because of a
// wrong password. If Exec returns an error, the single commands have no errors.
func Exec(ctx context.Context, pipe redis.Pipeliner) error {
	commands, err := pipe.Exec(ctx)
	for _, command := range commands {
		if command.Err() != nil {
			return nil
		}
	}
	return err
}

// silenceLibrary turns off the log of the Redis library. The log of the Redis library would go to standard error, and
// would only repeat errors that calls of the library also return.
var silenceLibrary = sync.OnceFunc(func() { redis.SetLogger(silence{}) })

type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}
