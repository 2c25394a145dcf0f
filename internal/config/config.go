package config

import (
	"time"

	"capper/internal/audience"
	"capper/internal/capping"
	"capper/internal/capping/pebblestore"
	"capper/internal/capping/redisstore"
	"capper/internal/live"
	"capper/internal/objects"
	"capper/internal/pacing"
	"capper/internal/segments"
	"capper/internal/server/gate"
	"capper/internal/trace"
)

// Config is a complete configuration of the service. A Config contains all default values, except those that other
// packages define. In a Config, all paths of files and directories are absolute. A relative path in the configuration
// file starts at the directory of this file.
type Config struct {
	Version  string // version of all settings on which the instances of a fleet must agree; see the variable own
	Server   Server
	Segments Segments
	// IDs is the key "ids": "dense", "uint64", "uuid" or "text". The segments must have this kind of user ids. With the
	// default "", the kind of the segments applies.
	IDs   string
	Store Store
	Log   Log
	// Console is the key "console". If Console is false, the service has no web console at /console. The default is
	// true.
	Console bool
	// UserLink is the key "console.user_link": the address of a user's page in another system, with {id} in place of
	// the user id. With the default "", the console shows no link.
	UserLink string
	// SecureCookies is the key "console.secure_cookies". Operators set this key to true for a service behind a proxy
	// that terminates TLS. With the default false, cookies are restricted to TLS only if the service itself uses TLS.
	SecureCookies bool
	Audit         Audit
	// Tracing is the section "tracing" with the keys "endpoint", "sample_ratio", "service_name", "timeout" and
	// "message_ids"; see type trace.Config. Without this section, the service records no spans.
	Tracing trace.Config
	// Policy contains the keys "channels", "require_channel", "limits", "suppress", "holdout", "quiet" and "timezone";
	// see type capping.Policy. The version of the policy is the version of the file.
	Policy *capping.Policy
	// PolicyText is a YAML text from which ParsePolicy reads Policy. PolicyText contains the version and the keys of
	// Policy, without comments, anchors and aliases. Files with the same version have the same PolicyText. The audit
	// stores PolicyText.
	PolicyText []byte
	// Acknowledged contains the keys "no_longer_suppressed" and "less_suppressed", which are lists of sets; see type
	// Acknowledged.
	Acknowledged Acknowledged
	// Sets is the section "sets": the keys "live" and "max_live" of sets, by the name of the set; see type live.Rules.
	Sets live.Rules
	// Audiences is the section "audiences": named audience expressions, which other expressions may use.
	Audiences *audience.Named
	// Pacers is the section "pacers", by the name of the pacer. A pacer has "limits" (a list of "max" and "window"), a
	// "rate" such as 250/s, or both. A pacer may also have "max_wait" and "per" ("message" or "key"); see type
	// pacing.Policy. Pacers is never nil.
	Pacers *pacing.Policy
	// Warnings describes valid but probably unintended settings, such as the absence of default limits.
	Warnings []string
}

// Server holds the settings of the API server.
type Server struct {
	Listen string // listen: host:port; default 127.0.0.1:8080; addresses other than loopback need api_keys
	// admin_listen: host:port for metrics, profiles and erasure; default "": listen serves metrics and erasure, and
	// profiles are unavailable
	AdminListen string
	TLS         TLS // tls: for both listeners; reloaded when the files change
	// stop_delay: time after SIGTERM for which the service still accepts connections, while /readyz reports not ready;
	// default 1s, up to 5m
	StopDelay   time.Duration
	StopTimeout time.Duration // stop_timeout: time limit for running requests after SIGTERM; default 20s, up to 10m
	// host_names: further host names that a loopback listener accepts, in addition to localhost and loopback addresses
	HostNames []string
	// without_keys: if true, a reload may remove all api_keys. After a reload without API keys, everybody on this
	// machine may call the API
	WithoutKeys bool
	// Bounds contains the keys max_json_users, max_bitmap_users, max_body, max_in_flight_users and call_timeout (10ms
	// to 5m). Bounds also contains the section bounds with the keys body_bytes (at least max_body), answer_bytes,
	// gzip_ratio, min_rate and connections. Type gate.Bounds describes each key and its default.
	Bounds gate.Bounds
	// Access contains three keys. The key clients.NAME.pacers is a list of pacers. The key api_keys is a list of API
	// keys, each with client, namespace, id, sha256, scopes (of gate.Scopes) and sets. The section rate_limits has the
	// keys default, and clients by name, each with users_per_second and burst (default: users_per_second). The types
	// gate.Rules and gate.Key describe these keys.
	Access gate.Rules
}

// TLS contains the file names of the server's certificate chain and private key. The fields CertFile and KeyFile of a
// TLS must both be filled, or both be empty.
type TLS struct{ CertFile, KeyFile string }

// Segments holds the location of the segments and the settings for loading them.
type Segments struct {
	Source string           // source: a directory or s3://bucket/prefix
	S3     objects.S3Config // s3: endpoint, region, path_style. Credentials come from the usual sources of the AWS SDK
	// Refresher contains the keys refresh (field Interval, at least 100ms; default segments.DefaultInterval), cache_dir
	// (default var/cache) and keep. The key keep is the time for which earlier generations (published versions) stay
	// available for audiences (1s to 24h; default segments.DefaultKeep).
	Refresher segments.RefresherConfig
}

// These constants are the possible values of the key "store.kind".
const (
	Embedded = "embedded"
	Redis    = "redis"
)

// The struct Store holds the settings of the store, which keeps a log of sends for each user.
type Store struct {
	Kind string // kind: embedded (default) or redis
	// embedded: path (default var/log.db), create (default true; false, for production, returns an error instead of
	// creating an empty store), cache_size (default pebblestore.DefaultCacheBytes)
	Embedded pebblestore.Config
	Redis    RedisStore // redis
}

// RedisStore holds the settings of a Redis Cluster, a single Redis server, or a Redis server with Sentinels.
type RedisStore struct {
	// Options contains the keys addrs, sentinel_master, username, replica_acks (default healthy), clock_skew (default
	// redisstore.DefaultClockSkew; 0: no tolerance, windows are exact to the millisecond), allow_no_append_only
	// (default false) and create (default true; false returns an error instead of creating an empty store); see type
	// redisstore.Config. The password is in $CAPPER_REDIS_PASSWORD or in the file password_file.
	Options      redisstore.Config
	PasswordFile string   // password_file: read again for each new connection; default none
	TLS          RedisTLS // tls
}

// RedisTLS holds the TLS settings for connections to Redis.
type RedisTLS struct {
	Enabled    bool   // enabled; default false
	CAFile     string // ca_file: PEM; default the certificate authorities of the system
	ServerName string // server_name: default the host of the Redis address
	CertFile   string // cert_file: PEM file of the client certificate, read for each new connection; default none
	KeyFile    string // key_file: PEM file of the certificate's key; set both files or neither
}

// The struct Audit holds the settings of the audit, which records decisions.
type Audit struct {
	To   string        // to: a directory or s3://bucket/prefix; default "": no audit
	Roll time.Duration // roll: time after which the audit begins a new file; default 10m, 1s to 24h
	// spool: only for s3://, the directory for audit files that wait for their upload; default var/audit
	Spool string
	// max_waiting: maximum size in bytes of the files that wait for their upload; beyond it, records are lost; default
	// 10GiB, 1MiB to 1TiB
	MaxWaiting int64
}

// Log holds the settings of the log that the service writes to stderr.
type Log struct {
	Level  string // level: debug, info (default), warn, error; reloaded
	Format string // format: text (default) or json
}
