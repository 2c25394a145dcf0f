package objects

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager"
	tmtypes "github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/logging"
)

// Objects above one part are read and written in parallel parts.
const (
	s3PartBytes = 8 << 20
	s3Parallel  = 4 // parts of one object at a time; segments are read in parallel as well
)

// S3Config says how to reach S3. The zero value is AWS, as the SDK's usual
// chain (environment, shared files, instance role) configures it.
type S3Config struct {
	Endpoint string // URL of another server; empty: AWS_ENDPOINT_URL_S3, else AWS
	Region   string // empty: from the SDK's chain, else us-east-1
	// Patient requests are tried again until their context ends, for a command
	// that nobody starts again. Otherwise a few times, for who comes again.
	Patient bool
	// Retrying is called with the error of each attempt that is followed by
	// another, from several goroutines. Nil: nothing. Only of patient requests.
	Retrying func(error)
	// MaxPause is the longest between two attempts. 0: 5 seconds.
	MaxPause time.Duration
	// Stall is how long a request may stand still before it is tried again. 0: a minute.
	Stall time.Duration
	// PathStyle addresses buckets as path segments. Nil: true when an endpoint is set.
	PathStyle *bool
}

// S3Flags are the flags of a command line that reach an S3 server. Credentials come from the SDK's usual chain.
type S3Flags struct {
	S3Endpoint  string `name:"s3-endpoint" placeholder:"URL" help:"URL of an S3 server other than AWS (also AWS_ENDPOINT_URL_S3)."`
	S3Region    string `name:"s3-region" placeholder:"NAME" help:"S3 region (also AWS_REGION)."`
	S3PathStyle *bool  `name:"s3-path-style" negatable:"" help:"Address S3 buckets by path instead of host name. Default: yes if an S3 endpoint is set."`
}

// Over is the configuration with the flags that were given in place of its own values.
func (f *S3Flags) Over(cfg S3Config) S3Config {
	cfg.Endpoint, cfg.Region = cmp.Or(f.S3Endpoint, cfg.Endpoint), cmp.Or(f.S3Region, cfg.Region)
	if f.S3PathStyle != nil {
		cfg.PathStyle = f.S3PathStyle
	}
	return cfg
}

// bucket is a location in an S3 bucket below a prefix. Deadlines come from the
// contexts; the SDK retries what is worth retrying, see setRetries.
type bucket struct {
	location string
	name     string
	prefix   string // empty, or ends in a slash
	api      *s3.Client
	transfer *transfermanager.Client

	probing sync.Mutex
	probed  bool // the server is known to heed conditions
}

var _ Location = (*bucket)(nil)

func openS3(ctx context.Context, location, name, prefix string, cfg S3Config) (*bucket, error) {
	api, err := newS3Client(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if prefix != "" {
		prefix += "/"
	}
	transfer := transfermanager.New(api, func(o *transfermanager.Options) {
		o.PartSizeBytes = s3PartBytes
		o.MultipartUploadThreshold = 2 * s3PartBytes
		o.Concurrency = s3Parallel
		o.GetObjectType = tmtypes.GetObjectRanges
	})
	return &bucket{location: location, name: name, prefix: prefix, api: api, transfer: transfer}, nil
}

func newS3Client(ctx context.Context, cfg S3Config) (*s3.Client, error) {
	loaded, err := config.LoadDefaultConfig(ctx, config.WithHTTPClient(stalling(cmp.Or(cfg.Stall, defaultStall))),
		config.WithLogger(logging.Nop{}))
	if err != nil {
		return nil, fmt.Errorf("load the S3 configuration: %w", err)
	}
	endpoint := cfg.Endpoint
	if endpoint == "" {
		endpoint = os.Getenv("AWS_ENDPOINT_URL_S3")
	}
	return s3.NewFromConfig(loaded, func(o *s3.Options) {
		if cfg.Region != "" {
			o.Region = cfg.Region
		}
		if o.Region == "" {
			o.Region = "us-east-1"
		}
		if endpoint != "" {
			o.BaseEndpoint = aws.String(endpoint)
			o.UsePathStyle = true
		}
		if cfg.PathStyle != nil {
			o.UsePathStyle = *cfg.PathStyle
		}
		setRetries(o, cfg)
		o.APIOptions = append(o.APIOptions, tracing)
		o.DisableLogOutputChecksumValidationSkipped = true // ranges cannot be checked; every bitmap has a SHA-256
	}), nil
}

// Name implements Source.
func (b *bucket) Name() string { return b.location }
