package lookup

import (
	"log/slog"
	"time"
)

// Config configures a Follower. Only Source is required.
type Config struct {
	// Source is a directory or s3://bucket/prefix to which segmentbuild publishes.
	Source string
	// CacheDir is a directory for a checked copy of the last good generation (published version). With this copy,
	// Follow succeeds while the source is down. If CacheDir is empty, there is no cache.
	CacheDir string
	// Interval is the time between two checks of the source. 0 means 30 seconds.
	Interval time.Duration
	// Timeout is the maximum time of one check, including the download. 0 means 2 minutes.
	Timeout time.Duration
	// S3 configures the connection to S3. With the zero S3, the default chain of the AWS SDK applies.
	S3 S3
	// Require names segments and sets. The Follower rejects a generation (published version) that lacks one of these
	// segments and sets.
	Require []string
	// MayLose contains, for sets in Require, the percentage of users who may leave the set when a new generation
	// replaces the one in use. The percentage is 0 to 100; the default is 0.1, and 100 allows every loss. A Follower
	// rejects a generation that exceeds a limit, unless the publisher approved this change of the set. At start-up,
	// Follow compares the live generation with the cached one. Without a cache, Follow compares with the newest earlier
	// generation in the source. A Follower does not compare segments, because users leave segments in normal operation.
	MayLose map[string]float64
	// Expressions contains expressions by name, such as "active | opened" by the name "engaged". Generation.Audience
	// accepts these names like names of sets.
	Expressions map[string]string
	// Logger receives the log; nil disables logging.
	Logger *slog.Logger
}

// S3 configures the connection to S3. The credentials for S3 come from the default chain of the AWS SDK: environment,
// shared files, instance role.
type S3 struct {
	Endpoint  string // URL of an S3 server; empty: AWS_ENDPOINT_URL_S3, else AWS
	Region    string // empty: from the SDK's default chain, else us-east-1
	PathStyle *bool  // true: bucket in the path of URLs; nil: true if Endpoint is set
}
