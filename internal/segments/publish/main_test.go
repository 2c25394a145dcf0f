package publish

import (
	"os"
	"testing"

	"capper/internal/objects/s3test"
)

// TestMain runs the tests with an S3 server, or acts as the publisher that TestKilledAtEveryStep
// kills.
func TestMain(m *testing.M) {
	if os.Getenv(doomedLocation) != "" {
		os.Exit(playDoomedPublisher())
	}
	os.Exit(s3test.Main(m.Run))
}
