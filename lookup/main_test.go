package lookup_test

import (
	"os"
	"testing"

	"capper/internal/objects/s3test"
)

func TestMain(m *testing.M) { os.Exit(s3test.Main(m.Run)) }
