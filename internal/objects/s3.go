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

// Package objects reads and writes large S3 objects in parts. The constant s3PartBytes is the size of a part, and
// s3Parallel is the number of concurrent transfers of parts.
const (
	s3PartBytes = 8 << 20
	s3Parallel  = 4 // parts of one object; callers also read several objects in parallel
)

// S3Config configures the connection to S3. The zero S3Config means AWS with the default configuration of the AWS
// SDK: environment, shared files, instance role.
type S3Config struct {
	Endpoint string // URL of an S3 server; empty: AWS_ENDPOINT_URL_S3, else AWS
	Region   string // empty: the region from the SDK's default chain, else us-east-1
	// Patient makes the client retry requests until their context ends. Commands that nothing restarts automatically
	// set Patient. Without Patient, the client retries a few times, because the caller tries again later.
	Patient bool
	// If Patient is true, the client calls the function Retrying with the error of each failed attempt. Several
	// goroutines may call Retrying at once. If Retrying is nil, there is no call.
	Retrying func(error)
	// MaxPause is the maximum pause between two attempts of a request. 0 means 5 seconds.
	MaxPause time.Duration
	// Stall is the longest time for which a request may transfer no byte. After this time, the client cancels and
	// retries the request. 0 means one minute.
	Stall time.Duration
	// If PathStyle is true, the name of the bucket is in the path of request URLs, and not in the host name. If
	// PathStyle is nil, the default is true with an endpoint, and otherwise false.
	PathStyle *bool
}

// S3Flags contains the command-line flags for the connection to an S3 server. The credentials for S3 come from the
// default chain of the AWS SDK, not from these flags.
type S3Flags struct {
	S3Endpoint  string `name:"s3-endpoint" placeholder:"URL" help:"URL of an S3 server other than AWS. Without this flag, the environment variable AWS_ENDPOINT_URL_S3 applies."`
	S3Region    string `name:"s3-region" placeholder:"NAME" help:"Region of the S3 bucket. Without this flag, the environment variable AWS_REGION applies."`
	S3PathStyle *bool  `name:"s3-path-style" negatable:"" help:"Put the S3 bucket's name into the path of URLs, not into the host name. Default: yes if an S3 endpoint is set."`
}

// The method Over returns a copy of the S3Config cfg in which the given command-line flags replace the values of cfg.
func (f *S3Flags) Over(cfg S3Config) S3Config {
	cfg.Endpoint, cfg.Region = cmp.Or(f.S3Endpoint, cfg.Endpoint), cmp.Or(f.S3Region, cfg.Region)
	if f.S3PathStyle != nil {
		cfg.PathStyle = f.S3PathStyle
	}
	return cfg
}

// A bucket is a Location below a prefix of an S3 bucket. The contexts of the callers limit the duration of requests to
// S3. The function setRetries configures the retries of the AWS SDK.
type bucket struct {
	location string
	name     string
	prefix   string // empty, or ends in a slash
	api      *s3.Client
	transfer *transfermanager.Client

	probing sync.Mutex
	probed  bool // true once a probe has shown that the server honours conditional writes
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
	endpoint := cmp.Or(cfg.Endpoint, os.Getenv("AWS_ENDPOINT_URL_S3"))
	return s3.NewFromConfig(loaded, func(o *s3.Options) {
		if cfg.Region != "" {
			o.Region = cfg.Region
		}
		o.Region = cmp.Or(o.Region, "us-east-1")
		if endpoint != "" {
			o.BaseEndpoint = aws.String(endpoint)
			o.UsePathStyle = true
		}
		if cfg.PathStyle != nil {
			o.UsePathStyle = *cfg.PathStyle
		}
		setRetries(o, cfg)
		o.APIOptions = append(o.APIOptions, tracing)
		o.DisableLogOutputChecksumValidationSkipped = true // ranges have no checksum, but every bitmap has a SHA-256
	}), nil
}

// Name implements Source.
func (b *bucket) Name() string { return b.location }
