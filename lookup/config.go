package lookup

import (
	"log/slog"
	"time"
)

// Config configures a Follower. Only Source is required.
type Config struct {
	// Source is a directory or s3://bucket/prefix to which segmentbuild publishes.
	Source string
	// CacheDir is a directory for a checked copy of the last good generation, with which Follow
	// succeeds while the source is down. Empty means no cache.
	CacheDir string
	// Interval is the time between two checks of the source. 0 means 30 seconds.
	Interval time.Duration
	// Timeout is the maximum time of one check, including the download. 0 means 2 minutes.
	Timeout time.Duration
	// S3 configures the connection to S3. The zero value means the default chain of the AWS SDK.
	S3 S3
	// Require names segments and sets. A generation that lacks one of them is rejected.
	Require []string
	// MayLose is, for each set in Require, how many of its users may leave from the generation in use to the next, per
	// 100 users: 0 to 100. The default for a set is 0.1; 100 allows every loss. A Follower rejects a generation that
	// exceeds a limit, or whose set is empty, unless the publisher approved this change of the set. At start-up, Follow
	// compares the live generation with the cached one, or without a cache with the newest earlier generation in the
	// source. A Follower does not compare segments, because users leave segments in normal operation.
	MayLose map[string]float64
	// Expressions holds named expressions, such as "engaged" for "active | opened", that Generation.Audience accepts as
	// names.
	Expressions map[string]string
	// Logger receives the log; nil disables logging.
	Logger *slog.Logger
}

// S3 configures the connection to S3. The credentials for S3 come from the default chain of the AWS SDK: environment,
// shared files, instance role.
type S3 struct {
	Endpoint  string // URL of another server; empty: AWS_ENDPOINT_URL_S3, else AWS
	Region    string // empty: from the SDK's default chain, else us-east-1
	PathStyle *bool  // buckets as path segments; nil: true if Endpoint is set
}
