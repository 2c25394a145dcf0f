//go:build storms

package alerts

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every rule fires when it should and not before, nor when all is well: promtool runs the unit tests of the rules,
// which takes 20 s of processor time.
func TestRulesFireWhenTheyShould(t *testing.T) {
	t.Parallel()
	tests, err := filepath.Glob(shipped("prometheus/tests/*.yaml"))
	require.NoError(t, err)
	require.Len(t, tests, 3)
	out, err := exec.Command(installed(t, "promtool"), append([]string{"test", "rules"}, tests...)...).CombinedOutput()
	require.NoError(t, err, "%s", out)
}
