// Package s3test connects tests to a real S3 server. The S3 server of the tests is already running, or scripts/s3.sh
// starts the server for the test run.
package s3test

import (
	"bufio"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"capper/internal/testkit"
)

// EnvFile is the name of an environment variable with the path of a settings file for a running S3 server. The script
// scripts/s3.sh writes the settings file.
const EnvFile = "CAPPER_TEST_S3"

// Main runs the tests of a package with an S3 server and returns the exit status. Main sets the environment variables
// AWS_* for the tests. If the environment variable EnvFile is not set, Main starts a server, and stops it after the
// tests. TestMain calls Main:
//
//	func TestMain(m *testing.M) { os.Exit(s3test.Main(m.Run)) }
func Main(tests func() int) int {
	file := os.Getenv(EnvFile)
	if file == "" {
		dir, err := os.MkdirTemp("", "s3test-*")
		if err != nil {
			return failed(err)
		}
		defer os.RemoveAll(dir)
		if err := script("up", dir); err != nil {
			return failed(err)
		}
		defer script("down", dir)
		file = filepath.Join(dir, "env")
	}
	if err := load(file); err != nil {
		return failed(err)
	}
	return tests()
}

func failed(err error) int {
	fmt.Fprintln(os.Stderr, "s3test:", err)
	return 1
}

// The function script runs scripts/s3.sh of this repository with the given arguments.
func script(verb, dir string) error {
	path := filepath.Join(testkit.Root(), "scripts", "s3.sh")
	out, err := exec.Command(path, verb, dir).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w\n%s", path, verb, err, out)
	}
	return nil
}

// The function load sets the environment variables from a file with server settings.
func load(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		name, value, ok := strings.Cut(strings.TrimPrefix(lines.Text(), "export "), "=")
		if !ok {
			continue
		}
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	return lines.Err()
}

// Client returns an AWS SDK client for the S3 test server, so that a test can check objects directly.
func Client() *s3.Client {
	return s3.New(s3.Options{
		Region:       os.Getenv("AWS_REGION"),
		BaseEndpoint: aws.String(os.Getenv("AWS_ENDPOINT_URL_S3")),
		UsePathStyle: true,
		Credentials: credentials.NewStaticCredentialsProvider(
			os.Getenv("AWS_ACCESS_KEY_ID"), os.Getenv("AWS_SECRET_ACCESS_KEY"), ""),
	})
}

// The function Bucket creates a bucket with a unique name on the S3 test server and returns the name.
func Bucket(t testing.TB) string {
	t.Helper()
	name, err := NewBucket(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// NewBucket creates a bucket with a unique name on the S3 test server, for callers without a testing.TB.
func NewBucket(ctx context.Context) (string, error) {
	name := "t" + strings.ToLower(rand.Text())
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if _, err := Client().CreateBucket(ctx, &s3.CreateBucketInput{Bucket: &name}); err != nil {
		return "", fmt.Errorf("create bucket %s: %w", name, err)
	}
	return name, nil
}
