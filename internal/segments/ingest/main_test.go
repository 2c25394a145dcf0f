package ingest

import (
	"os"
	"testing"

	"capper/internal/objects/s3test"
)

// TestMain runs the tests with an S3 server.
func TestMain(m *testing.M) { os.Exit(s3test.Main(m.Run)) }
