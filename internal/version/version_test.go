package version

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/zones"
)

func TestWhatIsNotStampedIsWhatGoKept(t *testing.T) {
	t.Parallel()
	info := &debug.BuildInfo{Main: debug.Module{Version: "v0.0.0-20261120-abc"}, Settings: []debug.BuildSetting{
		{Key: "vcs", Value: "git"}, {Key: "vcs.revision", Value: "abc"},
		{Key: "vcs.time", Value: "2026-11-20T09:12:44Z"},
	}}
	stamped := Build{Version: "v1.2.3", Commit: "def", Date: "2026-11-21T00:00:00Z", Go: "go1.26.0", Zones: "2025c"}
	for name, c := range map[string]struct {
		stamp Build
		info  *debug.BuildInfo
		want  string
	}{
		"stamped": {stamped, info, "v1.2.3 (commit def, 2026-11-21T00:00:00Z, go1.26.0, zone rules 2025c)"},
		"stamped in part": {Build{Version: "v1.2.3", Go: "go1.26.0", Zones: "2025c"}, info,
			"v1.2.3 (commit abc, 2026-11-20T09:12:44Z, go1.26.0, zone rules 2025c)"},
		"from a checkout": {Build{Go: "go1.26.0", Zones: "2025c"}, info,
			"v0.0.0-20261120-abc (commit abc, 2026-11-20T09:12:44Z, go1.26.0, zone rules 2025c)"},
		"from a directory": {Build{Go: "go1.26.0", Zones: "2025c"},
			&debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}, "(devel) (commit unknown, unknown, go1.26.0, " +
				"zone rules 2025c)"},
		"without modules": {Build{Go: "go1.26.0", Zones: "2025c"}, nil,
			"unknown (commit unknown, unknown, go1.26.0, zone rules 2025c)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, of(c.stamp, c.info).String())
		})
	}
	require.Equal(t, runtime.Version(), Current().Go)
	require.Equal(t, zones.Version(), Current().Zones)
}

// The stamp of scripts/version.sh reaches the program, from a checkout and from a directory
// without git, wherever the module's path leads.
func TestTheStampReachesTheProgram(t *testing.T) {
	t.Parallel()
	for name, environment := range map[string][]string{
		"told": {"CAPPER_VERSION=v7.8.9", "CAPPER_COMMIT=0123456789abcdef0123456789abcdef01234567",
			"CAPPER_DATE=2026-11-20T09:12:44Z"},
		"without git": {"GIT_DIR=/nonexistent"},
		"from git":    nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			flags := exec.Command("../../scripts/version.sh", "ldflags")
			flags.Env = append(flags.Environ(), environment...)
			out, err := flags.Output()
			require.NoError(t, err)
			program := filepath.Join(t.TempDir(), "show")
			built, err := exec.Command("go", "build", "-buildvcs=false", "-ldflags", strings.TrimSpace(string(out)),
				"-o", program, "./testdata/show").CombinedOutput()
			require.NoError(t, err, "%s", built)
			shown, err := exec.Command(program).Output()
			require.NoError(t, err)
			var got Build
			require.NoError(t, json.Unmarshal(shown, &got))
			require.Equal(t, runtime.Version(), got.Go)
			switch name {
			case "told":
				require.Equal(t, Build{"v7.8.9", "0123456789abcdef0123456789abcdef01234567", "2026-11-20T09:12:44Z",
					runtime.Version(), zones.Version()}, got)
			case "without git":
				require.NotEmpty(t, got.Version)
				require.Equal(t, []string{Unknown, Unknown}, []string{got.Commit, got.Date})
			default:
				require.Regexp(t, `^[0-9a-f]{40}$`, got.Commit)
				require.Regexp(t, `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$`, got.Date)
				require.Regexp(t, `^v\d+\.\d+\.\d+`, got.Version)
			}
		})
	}
}
