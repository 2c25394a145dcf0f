package segments

import (
	"os"
	"testing"

	"capper/internal/segments/s3test"
)

func TestMain(m *testing.M) { os.Exit(s3test.Main(m.Run)) }
