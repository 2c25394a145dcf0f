package lookup

import (
	"log/slog"
	"time"
)

// Config says what a Follower follows. Only Source is required.
type Config struct {
	// Source is a directory or s3://bucket/prefix: what segmentbuild publishes to.
	Source string
	// CacheDir keeps a checked copy of the last good generation, so that Follow succeeds
	// while the source is away. Empty: no cache.
	CacheDir string
	// Interval between two looks at the source. 0: 30 seconds.
	Interval time.Duration
	// Timeout of one look, reading included. 0: 2 minutes.
	Timeout time.Duration
	// S3 says how to reach S3. The zero value: as the AWS SDK's usual chain configures it.
	S3 S3
	// Require names segments and sets without which a generation is not used.
	Require []string
	// MayLose is, by set of Require, how many users may leave it from the generation in use
	// to the next, per 100 users: 0 to 100. A generation that more left, or whose set is empty,
	// is not used, unless its publisher accepted that change of the set; at a start it is
	// compared with the cached one, without a cache with the newest earlier one of the source. A set that is not given:
	// 0.1. At 100 all may leave. Segments are not compared: users leave them as they should.
	MayLose map[string]float64
	// Expressions by name, which those of Generation.Audience may use, such as
	// engaged: active | opened.
	Expressions map[string]string
	// Logger: nil logs nowhere.
	Logger *slog.Logger
}

// S3 says how to reach S3. Keys come from the AWS SDK's usual chain: environment, shared files, instance role.
type S3 struct {
	Endpoint  string // URL of another server; empty: AWS_ENDPOINT_URL_S3, else AWS
	Region    string // empty: from the SDK's chain, else us-east-1
	PathStyle *bool  // buckets as path segments; nil: true when an endpoint is set
}
