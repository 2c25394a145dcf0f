package config

import (
	"time"

	"capper/internal/capping"
)

// Config is a whole configuration, every default filled in. Paths of files and
// directories are absolute: what is relative in the file begins at its directory.
type Config struct {
	Version  string // first 12 hex digits of the file's SHA-256
	Server   Server
	Segments Segments
	Store    Store
	Log      Log
	Policy   *capping.Policy // channels and limits; its Version is that of the file
	// Warnings are what is allowed but hardly meant, such as no default limits.
	Warnings []string

	leaves map[string]string // what the file gives, by path: to name what has changed
}

// Server is how the API is served.
type Server struct {
	Listen       string               // listen: host:port; default 127.0.0.1:8080; beyond loopback it demands api_keys
	AdminListen  string               // admin_listen: host:port of metrics, profiles and erasure; default "": metrics and erasure on listen, no profiles
	TLS          TLS                  // tls: of both listeners; read again when the files change
	CallTimeout  time.Duration        // call_timeout: what is not decided by then is unavailable; default 5s, 10ms to 5m
	StopDelay    time.Duration        // stop_delay: how long /readyz says not ready after SIGTERM before connections are refused; default 1s, up to 5m
	StopTimeout  time.Duration        // stop_timeout: for requests in flight at SIGTERM; default 20s, up to 10m
	MaxJSONUsers int                  // max_json_users: ids of a call in JSON; default 100000
	MaxBitmap    int                  // max_bitmap_users: ids of a call as a bitmap; default 1000000
	MaxBody      int64                // max_body: bytes of a request body; default 16MiB
	MaxInFlight  int                  // max_in_flight_users: users of all calls under way; default 4000000
	Bounds       Bounds               // bounds: of memory and connections, shared fairly between clients
	HostNames    []string             // host_names: by which a listener on loopback may be called, beside localhost and loopback addresses
	WithoutKeys  bool                 // without_keys: true: a reload may take the last of api_keys away, so that everybody on this machine may call
	APIKeys      []APIKey             // api_keys: who may call; none: anyone who reaches the loopback address
	RateLimit    RateLimit            // rate_limits.default: of each client without one of its own; zero: none
	ClientLimits map[string]RateLimit // rate_limits.clients

	clientKeys []value // keys of rate_limits.clients, checked when api_keys are known
}

// Bounds are of what all calls together may take. A client that holds more
// than its share is refused before another is.
type Bounds struct {
	BodyBytes   int64 // body_bytes: memory of bodies that come in and are decoded; default 512MiB, or four times max_body; at least max_body
	AnswerBytes int64 // answer_bytes: memory of answers that are made and written; default 512MiB
	GzipRatio   int   // gzip_ratio: bytes that a byte of gzip may stand for, beyond 4 MiB; default 100
	MinRate     int64 // min_rate: bytes per second at which bodies must come and answers be read, after 10 seconds; default 64KiB
	Connections int   // connections: open ones of each listener; default 16384
}

// TLS names the files of a certificate chain and its key; both or neither.
type TLS struct{ CertFile, KeyFile string }

// APIKey lets a client call. The key that the client sends is `id.secret`.
type APIKey struct {
	Client    string   // client: who calls; at most two keys each, for rotation
	Namespace string   // namespace: of the message ids of its calls, the same for all keys of a client; default none
	ID        string   // id: the part before the dot, unique
	SHA256    string   // sha256: hex of the SHA-256 of the whole key
	Scopes    []string // scopes: of filter, read, admin
}

// RateLimit bounds the users per second that a client may ask for. The zero
// value is no limit.
type RateLimit struct {
	UsersPerSecond int // users_per_second
	Burst          int // burst: users at once; default users_per_second
}

// Segments is where the segments come from.
type Segments struct {
	Source   string        // source: a directory or s3://bucket/prefix
	Refresh  time.Duration // refresh: between polls; default 30s, at least 100ms
	CacheDir string        // cache_dir: verified copies for a start without the source; default var/cache
	S3       S3
}

// S3 is how buckets are reached. Credentials come from the SDK's usual chain.
type S3 struct {
	Endpoint  string // endpoint: default $AWS_ENDPOINT_URL_S3, else AWS
	Region    string // region: default the SDK's chain, else us-east-1
	PathStyle *bool  // path_style: default true with an endpoint, false without
}

// The kinds of store.
const (
	Embedded = "embedded"
	Redis    = "redis"
)

// Store is where logs are kept.
type Store struct {
	Kind     string // kind: embedded (default) or redis
	Embedded EmbeddedStore
	Redis    RedisStore
}

// EmbeddedStore is a Pebble database.
type EmbeddedStore struct {
	Path      string // path: a directory; beside it is a file PATH.id; default var/log.db
	Create    bool   // create: begin with an empty store where none is; default true; false, for production, refuses to
	CacheSize int64  // cache_size: bytes of cache; default 512MiB, and memory may exceed it by about 200MiB
}

// RedisStore is a Redis Cluster, or a single Redis, or one behind Sentinels.
type RedisStore struct {
	Addrs        []string      // addrs: some nodes, host:port; the cluster tells the others
	Master       string        // sentinel_master: name of the master; addrs are then Sentinels
	Username     string        // username; the password is $CAPPER_REDIS_PASSWORD, or in password_file
	PasswordFile string        // password_file: read at every new connection, for passwords that change; default none
	TLS          RedisTLS      // tls
	ReplicaAcks  int           // replica_acks: replicas that must hold a grant; healthy (default) is HealthyReplicas
	ClockSkew    time.Duration // clock_skew: tolerated between clocks; default 250ms; 0: no guard, windows to the millisecond
	// allow_no_append_only: take servers without append-only file; default false. Only where lost nodes are
	// replaced and never restarted empty, as some managed services do.
	AllowNoAppendOnly bool
	Create            bool // create: begin anew where nothing is recorded, or where some of it is lost; default true; false refuses to
}

// HealthyReplicas is the ReplicaAcks of `healthy`: every replica that the
// cluster does not flag as failed, never fewer than one.
const HealthyReplicas = -1

// RedisTLS is TLS towards Redis.
type RedisTLS struct {
	Enabled    bool   // enabled; default false
	CAFile     string // ca_file: PEM; default the system's authorities
	ServerName string // server_name: default the host of the address
	CertFile   string // cert_file: PEM of the certificate to show, read at every connection; default none
	KeyFile    string // key_file: PEM of its key; both or neither
}

// Log is how the service logs, on stderr.
type Log struct {
	Level  string // level: debug, info (default), warn, error
	Format string // format: text (default) or json
}
