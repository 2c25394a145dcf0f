//go:build storms

package bitmap

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCRoaringReadsOurBitmaps checks that the CRoaring implementation reads our bitmaps as the same
// sets and writes the same bytes for them.
func TestCRoaringReadsOurBitmaps(t *testing.T) {
	t.Parallel()
	build := exec.CommandContext(t.Context(), "../../scripts/croaring.sh")
	build.Stderr = os.Stderr
	program, err := build.Output()
	require.NoError(t, err, "CRoaring is needed; see the output of scripts/croaring.sh above")
	for seed := range uint64(12) {
		ids := sample(seed)
		b := SetOf(ids...).Bitmap()
		var stdout, stderr bytes.Buffer
		check := exec.CommandContext(t.Context(), strings.TrimSpace(string(program)))
		check.Stdin, check.Stdout, check.Stderr = bytes.NewReader(b.Bytes()), &stdout, &stderr
		require.NoError(t, check.Run(), "seed %d", seed)

		sum := uint64(14695981039346656037)
		for id := range b.All() {
			sum = (sum ^ uint64(id)) * 1099511628211
		}
		lowest, highest, _ := b.Bounds()
		require.Equal(t, fmt.Sprintf("%d %d %d %d\n", b.Cardinality(), lowest, highest, sum), stderr.String(),
			"seed %d", seed)

		theirs, err := Read(stdout.Bytes())
		require.NoError(t, err, "seed %d", seed)
		require.Equal(t, b.Cardinality(), theirs.Cardinality())
		require.True(t, bytes.Equal(b.Bytes(), theirs.Bytes()), "seed %d: CRoaring writes other bytes", seed)
	}
}
