package redisstore

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// newClient is a client that tries once: what to do about a failure is for the
// run to decide. Attempts are bounded by contexts, so that a far server gets
// more time.
func newClient(c *Config, addr string, trips *roundTrips) *redis.Client {
	quiet()
	if c.SentinelMaster != "" {
		return redis.NewFailoverClient(&redis.FailoverOptions{
			MasterName: c.SentinelMaster, SentinelAddrs: c.Addrs,
			Username: c.Username, Password: c.Password, CredentialsProviderContext: c.credentials(), Dialer: trips.dialThrough(c),
			// A dial asks the Sentinels first: there has to be time for another one when the first is silent.
			DialTimeout: 4 * c.AttemptTimeout, ReadTimeout: c.longestAttempt(), WriteTimeout: c.longestAttempt(),
			ContextTimeoutEnabled: true, MaxRetries: -1, DialerRetries: 1, Protocol: 2, DisableIdentity: true,
			PoolSize: poolSize,
		})
	}
	return newDirectClient(c, addr, trips)
}

// newDirectClient is a client of the server at addr, Sentinels or not.
func newDirectClient(c *Config, addr string, trips *roundTrips) *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr: addr, Username: c.Username, Password: c.Password, CredentialsProviderContext: c.credentials(), Dialer: trips.dialThrough(c),
		DialTimeout: c.dialTimeout(), ReadTimeout: c.longestAttempt(), WriteTimeout: c.longestAttempt(),
		ContextTimeoutEnabled: true, MaxRetries: -1, DialerRetries: 1, Protocol: 2, DisableIdentity: true,
		PoolSize:                 poolSize,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
}

// dialTimeout is for a connection and its handshake.
func (c *Config) dialTimeout() time.Duration { return 2 * c.AttemptTimeout }

// credentials is Credentials as the library asks for them.
func (c *Config) credentials() func(context.Context) (string, string, error) {
	if c.Credentials == nil {
		return nil
	}
	return func(context.Context) (string, string, error) { return c.Credentials() }
}

// execute sends the commands. Each of them holds its own error; the one that is
// returned is that of a connection that was refused, as with a wrong password,
// of which the library tells the commands nothing: nothing was sent.
func execute(ctx context.Context, pipe redis.Pipeliner) error {
	commands, err := pipe.Exec(ctx)
	for _, command := range commands {
		if command.Err() != nil {
			return nil
		}
	}
	return err
}

// poolSize leaves room beside the lanes for questions about the cluster.
const poolSize = lanes + 4

// quiet silences the library's own log, which goes to standard error and says
// nothing that the store's errors do not.
var quiet = sync.OnceFunc(func() { redis.SetLogger(silence{}) })

type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}
