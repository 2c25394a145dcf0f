package alerts

import (
	"capper/internal/testcluster"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) { os.Exit(testcluster.Run(m)) }

// shipped is a file of deploy.
func shipped(name string) string { return filepath.Join("..", "..", "..", "deploy", name) }

// installed finds a program of Prometheus, and installs them when they are missing.
func installed(t testing.TB, program string) string {
	t.Helper()
	out, err := exec.Command("bash", filepath.Join("..", "..", "..", "scripts", "prometheus.sh")).CombinedOutput()
	require.NoError(t, err, "%s", out)
	path, err := exec.LookPath(program)
	require.NoError(t, err)
	return path
}
