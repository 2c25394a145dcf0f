package compose

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func file() string { return filepath.Join(Root(), "deploy", "compose", "compose.yaml") }

// A field that compose does not know is refused, so that the other tests show something.
func TestTheLibraryIsStrict(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(file())
	require.NoError(t, err)
	for right, wrong := range map[string]string{
		"stop_grace_period:":           "stop_grace:",
		"condition: service_completed": "conditions: service_completed",
		"interval: 5s":                 "interval: soon",
		"networks: [redis, calls]":     "networks: [redis, others]",
	} {
		require.Contains(t, string(text), right)
		bad := filepath.Join(t.TempDir(), "compose.yaml")
		require.NoError(t, os.WriteFile(bad, bytes.Replace(text, []byte(right), []byte(wrong), 1), 0o600))
		_, err := Load(bad)
		require.Error(t, err, wrong)
	}
}

// The image is the one that scripts/image.sh makes.
func TestTheImageIsTheOneThatIsBuilt(t *testing.T) {
	t.Parallel()
	script, err := os.ReadFile(filepath.Join(Root(), "scripts", "image.sh"))
	require.NoError(t, err)
	composed, err := os.ReadFile(file())
	require.NoError(t, err)
	require.Contains(t, string(composed), "image: ${CAPPER_IMAGE:-localhost/capper:latest}\n")
	require.Contains(t, string(script), "tags+=(-t localhost/capper:latest)\n")
}
