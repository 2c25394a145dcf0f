package charts

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What goes for pods goes for that of the CronJob, and it asks S3 in the way of the service.
func TestTheBuildsPod(t *testing.T) {
	t.Parallel()
	file := valuesFiles(t)["everything"]
	r := render(t, file)
	build := func(r *rendering) object {
		return r.all("CronJob")[0].object("spec", "jobTemplate", "spec", "template")
	}
	require.Equal(t, "messaging", build(r).text("metadata", "labels", "team"))
	require.Equal(t, "segmentbuild", build(r).text("metadata", "labels", "app.kubernetes.io/component"))
	require.Equal(t, r.pod().object("metadata", "annotations"), build(r).object("metadata", "annotations"))
	for _, key := range []string{"affinity", "priorityClassName", "nodeSelector", "tolerations"} {
		require.NotNil(t, r.pod().at("spec", key), key)
		require.Equal(t, r.pod().at("spec", key), build(r).at("spec", key), key)
	}
	for style, want := range map[string]string{"true": "--s3-path-style", "false": "--no-s3-path-style"} {
		r := render(t, file, written(t, "config: {segments: {s3: {path_style: "+style+"}}}"))
		require.Contains(t, build(r).list("spec", "containers")[0].at("args"), want)
	}
	r = render(t, file, written(t, "config: {segments: {s3: {path_style: null}}}"))
	require.NotContains(t, string(r.text), "s3-path-style")
}
