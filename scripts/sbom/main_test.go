package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The bill of this test's own program names what `go version -m` does, and nothing else.
func TestEveryModuleIsListed(t *testing.T) {
	t.Parallel()
	program, err := os.Executable()
	require.NoError(t, err)
	var out, again strings.Builder
	args := []string{"-version", "v1.2.3", "-date", "2026-11-20T09:12:44Z", program, program}
	require.NoError(t, run(args, &out))
	require.NoError(t, run(args, &again))
	require.Equal(t, out.String(), again.String())
	var got bill
	require.NoError(t, json.Unmarshal([]byte(out.String()), &got))
	require.Equal(t, "v1.2.3", got.Metadata.Component.Version)
	require.Equal(t, "Apache-2.0", got.Metadata.Component.Licenses[0].License.ID)

	listed, err := exec.Command("go", "version", "-m", program).Output()
	require.NoError(t, err)
	want := []string{"std " + runtime.Version()}
	for line := range strings.Lines(string(listed)) {
		if fields := strings.Fields(line); len(fields) > 2 && fields[0] == "dep" {
			want = append(want, fields[1]+" "+fields[2])
		}
	}
	var names []string
	for _, c := range got.Components {
		names = append(names, c.Name+" "+c.Version)
		require.True(t, c.Name == "std" || len(c.Hashes) == 1, c.Name)
	}
	require.ElementsMatch(t, want, names)
	require.Len(t, got.Dependencies[0].DependsOn, len(names))
}

func TestWhatIsNoProgramIsRefused(t *testing.T) {
	t.Parallel()
	require.ErrorContains(t, run(nil, new(strings.Builder)), "at least one program")
	require.ErrorContains(t, run([]string{"main.go"}, new(strings.Builder)), "read the modules of main.go")
}
