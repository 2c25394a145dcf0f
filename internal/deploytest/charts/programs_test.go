package charts

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/testkit"
)

func TestMain(m *testing.M) {
	status := m.Run()
	testkit.RemovePrograms()
	os.Exit(status)
}

func program(t *testing.T, name string) string {
	t.Helper()
	return testkit.Program(t, name)
}

// The real capper accepts the configuration that each pod gets.
func TestCapperAcceptsItsConfiguration(t *testing.T) {
	t.Parallel()
	capper := program(t, "capper")
	each(t, func(t *testing.T, r *rendering) {
		file := filepath.Join(t.TempDir(), "capper.yaml")
		require.NoError(t, os.WriteFile(file, []byte(r.configuration()), 0o600))
		out, err := exec.Command(capper, "check-config", file).CombinedOutput()
		require.NoError(t, err, "%s", out)
	})
	t.Run("and refuses another", func(t *testing.T) {
		t.Parallel()
		file := filepath.Join(t.TempDir(), "capper.yaml")
		text := strings.Replace(render(t, valuesFiles(t)["redis"]).configuration(), "daily: 1", "daily: many", 1)
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		require.Error(t, exec.Command(capper, "check-config", file).Run())
	})
}

// The real segmentbuild accepts the command line and the build file of the CronJob. Inputs that lie
// in S3 or in a claim are files of a folder here.
func TestSegmentbuildAcceptsItsCommand(t *testing.T) {
	t.Parallel()
	segmentbuild := program(t, "segmentbuild")
	jobs := 0
	for name, file := range valuesFiles(t) {
		r := render(t, file)
		for _, job := range r.all("CronJob") {
			jobs++
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				for _, input := range []string{"inputs/vip-1.csv", "inputs/vip-2.csv", "warehouse/vip/1.csv",
					"warehouse/opted-out/1.csv"} {
					require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, input)), 0o755))
					require.NoError(t, os.WriteFile(filepath.Join(dir, input), []byte("user_id\n7\n42\n"), 0o600))
				}
				mapped := strings.NewReplacer("s3://segments/prod", dir+"/published", "s3://warehouse", dir+
					"/warehouse",
					"/inputs", dir+"/inputs", "/etc/segmentbuild", dir, ".csv.gz", ".csv", ".parquet", ".csv")
				text := r.all("ConfigMap")
				build := text[len(text)-1].text("data", "segments.yaml")
				for _, o := range text {
					if found := o.text("data", "segments.yaml"); found != "" {
						build = found
					}
				}
				require.NoError(t, os.WriteFile(filepath.Join(dir, "segments.yaml"), []byte(mapped.Replace(build)),
					0o600))
				container := job.object("spec", "jobTemplate", "spec", "template").list("spec", "containers")[0]
				require.Equal(t, []any{"segmentbuild"}, container.at("command"))
				args := []string{}
				for _, arg := range container.at("args").([]any) {
					args = append(args, mapped.Replace(arg.(string)))
				}
				args = append(args, "--dry-run")
				if strings.Contains(build, "opted-out") {
					require.Contains(t, build, "only_grows")
				}
				out, err := exec.Command(segmentbuild, args...).CombinedOutput()
				require.NoError(t, err, "%s", out)
				require.Contains(t, string(out), "vip")
			})
		}
	}
	require.Equal(t, 2, jobs)
}
