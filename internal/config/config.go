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

// Config is a complete configuration. A Config contains every default, except those that belong to another package.
// Paths of files and directories are absolute; a relative path in the file starts at the file's directory.
type Config struct {
	Version  string // version of all settings on which the instances of a fleet must agree; see own
	Server   Server
	Segments Segments
	// IDs is ids: dense, uint64, uuid or text, the kind that the segments' location must have; "": the kind of the
	// location counts.
	IDs   string
	Store Store
	Log   Log
	// Console is console: false serves no console at /console; default true.
	Console bool
	// UserLink is console.user_link: the address of a user in another system, in which {id} stands for the id; default
	// "": the console shows no link.
	UserLink string
	// SecureCookies is console.secure_cookies: true for a service behind a proxy that speaks TLS; default false: the
	// cookies are for TLS only if the service itself speaks TLS.
	SecureCookies bool
	Audit         Audit
	// Tracing is tracing: endpoint, sample_ratio, service_name, timeout and message_ids; see its type. Without this
	// key, nothing is traced.
	Tracing trace.Config
	// Policy is channels, require_channel, limits, suppress, holdout, quiet and timezone; see its type. Its Version
	// is that of the file.
	Policy *capping.Policy
	// PolicyText is YAML that ParsePolicy reads as Policy: the version and the keys of Policy, without comments,
	// anchors and aliases. Files with the same version have the same text. The audit stores this text.
	PolicyText []byte
	// Acknowledged is no_longer_suppressed and less_suppressed, which are lists of sets; see its type.
	Acknowledged Acknowledged
	// Sets is sets: live and max_live of sets, by name; see the type.
	Sets live.Rules
	// Audiences is audiences: named expressions, which other expressions may use.
	Audiences *audience.Named
	// Pacers is pacers, by name. A pacer has limits (a list of max and window), a rate such as 250/s, or both, and
	// max_wait and per (only message); see its type. Not nil.
	Pacers *pacing.Policy
	// Warnings describes valid but probably unintended settings, such as the absence of default limits.
	Warnings []string
}

// Server holds the settings of the API server.
type Server struct {
	Listen string // listen: host:port; default 127.0.0.1:8080; an address beyond loopback requires api_keys
	// admin_listen: host:port of metrics, profiles and erasure; default "": metrics and erasure on listen, no profiles
	AdminListen string
	TLS         TLS // tls: of both listeners; read again when the files change
	// stop_delay: time between SIGTERM, when /readyz reports not ready, and the refusal of connections; default 1s,
	// up to 5m
	StopDelay   time.Duration
	StopTimeout time.Duration // stop_timeout: time limit for running requests after SIGTERM; default 20s, up to 10m
	// host_names: accepted host names of a loopback listener, besides localhost and loopback addresses
	HostNames []string
	// without_keys: true: a reload may remove the last of api_keys, so that everybody on this machine may call
	WithoutKeys bool
	// Bounds are max_json_users, max_bitmap_users, max_body, max_in_flight_users and call_timeout (10ms to 5m), and
	// the keys of bounds: body_bytes (at least max_body), answer_bytes, gzip_ratio, min_rate and connections. The
	// type describes each key and its default.
	Bounds gate.Bounds
	// Access is clients.NAME.pacers, a list of pacers, and api_keys, a list of client, namespace, id, sha256, scopes
	// (of gate.Scopes) and sets, and rate_limits: default, and clients by name, each with users_per_second and burst
	// (default users_per_second). The types describe each key.
	Access gate.Rules
}

// TLS names the files of a certificate chain and of its key. Both must be set, or neither.
type TLS struct{ CertFile, KeyFile string }

// Segments names the source of the segments and its settings.
type Segments struct {
	Source string           // source: a directory or s3://bucket/prefix
	S3     objects.S3Config // s3: endpoint, region, path_style. Credentials come from the SDK's usual chain
	// Refresher is refresh (Interval, at least 100ms; default segments.DefaultInterval), cache_dir (default
	// var/cache) and keep (Keep: how long earlier generations are kept for audiences; default segments.DefaultKeep,
	// 1s to 24h).
	Refresher segments.RefresherConfig
}

// A store has one of these kinds.
const (
	Embedded = "embedded"
	Redis    = "redis"
)

// Store holds the settings of the store for users' logs.
type Store struct {
	Kind string // kind: embedded (default) or redis
	// embedded: path (default var/log.db), create (default true; false, for production, refuses to create an empty
	// store), cache_size (default pebblestore.DefaultCacheBytes)
	Embedded pebblestore.Config
	Redis    RedisStore // redis
}

// RedisStore holds the settings of a Redis Cluster, of a single Redis, or of a Redis with Sentinels.
type RedisStore struct {
	// Options are addrs, sentinel_master, username, replica_acks (default healthy), clock_skew (default
	// redisstore.DefaultClockSkew; 0: no guard, windows exact to the millisecond), allow_no_append_only (default
	// false) and create (default true; false refuses to create an empty store); see the type. The password is
	// $CAPPER_REDIS_PASSWORD, or in password_file.
	Options      redisstore.Config
	PasswordFile string   // password_file: read for each new connection, because passwords change; default none
	TLS          RedisTLS // tls
}

// RedisTLS holds the TLS settings for connections to Redis.
type RedisTLS struct {
	Enabled    bool   // enabled; default false
	CAFile     string // ca_file: PEM; default the system's authorities
	ServerName string // server_name: default the host of the address
	CertFile   string // cert_file: PEM file of the client certificate, read for each connection; default none
	KeyFile    string // key_file: PEM file of the certificate's key; both or neither
}

// Audit holds the settings of the audit, which records decisions.
type Audit struct {
	To   string        // to: a directory or s3://bucket/prefix; default "": nothing is recorded
	Roll time.Duration // roll: time after which a new file begins; default 10m, 1s to 24h
	// spool: only for s3://, the directory of records that wait for the upload; default var/audit
	Spool string
	// max_waiting: maximum bytes of files that wait for the upload before records are lost; default 10GiB, 1MiB to
	// 1TiB
	MaxWaiting int64
}

// Log holds the settings of the service's log on stderr.
type Log struct {
	Level  string // level: debug, info (default), warn, error; reloaded
	Format string // format: text (default) or json
}
