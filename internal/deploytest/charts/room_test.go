package charts

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// scratch are the limit and the request of a pod without a volume, in MiB.
func scratch(t *testing.T, r *rendering) (limit, request int) {
	t.Helper()
	mib := func(text string) int {
		n, err := strconv.Atoi(strings.TrimSuffix(text, "Mi"))
		require.NoError(t, err, text)
		return n
	}
	for _, volume := range r.pod().list("spec", "volumes") {
		if volume.text("name") == "data" {
			return mib(volume.text("emptyDir", "sizeLimit")),
				mib(r.container().text("resources", "requests", "ephemeral-storage"))
		}
	}
	require.Fail(t, "no volume data")
	return 0, 0
}

// A pod without a volume may hold what the service writes before it stops writing: two generations,
// and what waits while S3 is away. The kubelet would evict it otherwise.
func TestRoomFollowsTheConfiguration(t *testing.T) {
	t.Parallel()
	files := valuesFiles(t)
	for values, want := range map[string]int{
		"redis: ":                         2048,
		"redis: memory: {segments: 4GiB}": 2*4096 + 256,
		"role: ":                          2*256 + 10*1024 + 256,
		"role: memory: {segments: 4GiB}":  2*4096 + 10*1024 + 256,
		"role: config: {audit: {max_waiting: 1GiB}}": 2048,
		"role: config: {audit: {max_waiting: 3GiB}}": 2*256 + 3*1024 + 256,
		"role: scratch: {sizeLimit: 20000Mi}":        20000,
	} {
		name, text, _ := strings.Cut(values, ": ")
		limit, request := scratch(t, render(t, files[name], written(t, text)))
		require.Equal(t, want, limit, values)
		require.Equal(t, want, request, values)
	}
	require.Nil(t, render(t, files["everything"]).container().at("resources", "requests", "ephemeral-storage"),
		"it has a volume")
}

func TestTooLittleRoomIsRefused(t *testing.T) {
	t.Parallel()
	files := valuesFiles(t)
	for values, want := range map[string]string{
		"role: scratch: {sizeLimit: 2Gi}": "scratch.sizeLimit: 2Gi: must be " +
			"at least 11008Mi: two generations of memory.segments (256MiB), config.audit.max_waiting (10GiB) and " +
			"256Mi; the pod would be evicted",
		"redis: scratch: {sizeLimit: 512Mi}": "scratch.sizeLimit: 512Mi: must be " +
			"at least 768Mi: two generations of memory.segments (256MiB) and 256Mi",
		"role: persistence: {enabled: true, size: 8Gi}": "persistence.size: 8Gi: must be at " +
			"least 11008Mi",
		"role: persistence: {enabled: true}\nmemory: {segments: 5GiB}": "persistence.size: 20Gi: must be " +
			"at least 20736Mi",
		"redis: config: {audit: {to: /var/lib/capper/audit}}": `config.audit.to: "/var/lib/capper/audit": only with persistence.enabled: true`,
		"role: config: {audit: {max_waiting: 1000}}":          "/config/audit/max_waiting",
		"role: scratch: {sizeLimit: 2Ti}\nmemory: {segments: 1048576GiB}": "scratch.sizeLimit: 2Ti: must be " +
			"at least",
		"role: config: {audit: {max_waiting: 5GiB, upload: ''}}": "'upload' not allowed",
		"role: scratch: {sizeLimit: 6Gi}\nconfig: {audit: {max_waiting: 6GiB}}": "scratch.sizeLimit: 6Gi: must be " +
			"at least 6912Mi",
	} {
		name, text, _ := strings.Cut(values, ": ")
		_, err := helm(t, files[name], written(t, text))
		require.ErrorContains(t, err, want, values)
	}
}
