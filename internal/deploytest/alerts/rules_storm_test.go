//go:build storms

package alerts

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every rule fires when it should and not before, nor when all is well: promtool runs the unit tests of the rules,
// which takes 35 s of processor time.
func TestRulesFireWhenTheyShould(t *testing.T) {
	t.Parallel()
	tests, err := filepath.Glob(shipped("prometheus/tests/*.yaml"))
	require.NoError(t, err)
	require.Len(t, tests, 3)
	promtool := exec.Command(installed(t, "promtool"), append([]string{"test", "rules"}, tests...)...)
	promtool.Env = append(os.Environ(), "GOGC=400")
	out, err := promtool.CombinedOutput()
	require.NoError(t, err, "%s", out)
}
