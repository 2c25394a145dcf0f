package alerts

import (
	"os"
	"path/filepath"
	"testing"

	"capper/internal/testcluster"
)

func TestMain(m *testing.M) { os.Exit(testcluster.Run(m)) }

// shipped is a file of deploy.
func shipped(name string) string { return filepath.Join("..", "..", "..", "deploy", name) }
