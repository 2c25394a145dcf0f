package charts

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// service is a name that Kubernetes takes for every kind, RFC 1035's.
var service = regexp.MustCompile(`^[a-z]([-a-z0-9]*[a-z0-9])?$`)

// Whatever a release is called, Kubernetes takes the names and labels of its objects, and no two
// releases have the same.
func TestNames(t *testing.T) {
	t.Parallel()
	tools, err := Installed()
	require.NoError(t, err)
	long := strings.Repeat("a", 45)
	owners := map[string]string{}
	for _, release := range []string{"prod", "2024", "prod.eu", "prod-eu", "true", "1e3", "capper", long + "-one",
		long + "-two", long + "12345678"} {
		r := renderAs(t, release, valuesFiles(t)["everything"])
		require.NoError(t, tools.Validate(r.text), release)
		for _, o := range r.objects {
			// of pods and jobs, with what comes to it
			most := map[string]int{"CronJob": 52, "StatefulSet": 52}[o.kind()]
			if most == 0 {
				most = 63
			}
			require.LessOrEqual(t, len(o.name()), most, release)
			require.Regexp(t, service, o.name(), release)
			require.Equal(t, release, o.text("metadata", "labels", "app.kubernetes.io/instance"))
			id := o.kind() + " " + o.name()
			require.Empty(t, owners[id], "%s is of %s too", id, release)
			owners[id] = release
		}
	}
	require.Equal(t, "prod", owners["StatefulSet prod-capper"], "short ones are as they are")
	require.Equal(t, "capper", owners["StatefulSet capper"])
}

// Names that look like something else in YAML stay texts.
func TestNamesStayTexts(t *testing.T) {
	t.Parallel()
	tools, err := Installed()
	require.NoError(t, err)
	r := renderAs(t, "prod", valuesFiles(t)["everything"], written(t, `
fullnameOverride: "null"
nameOverride: "123"
priorityClassName: "1"
tls: {secret: "2"}
redis: {passwordSecret: {name: "3", key: "4"}, ca: {secret: "5", key: "6"}, clientCertificateSecret: "7"}
s3: {credentialsSecret: {name: "8", accessKeyID: "9", secretAccessKey: "10"}}
serviceAccount: {name: "11"}
persistence: {storageClass: "12"}
ingress: {className: "13", tlsSecret: "14"}
image: {pullSecrets: ["15"]}
metrics: {keySecret: {name: "16", key: "17"}, serviceMonitor: {serverName: "18", ca: {secret: "19", key: "20"}}}
segmentbuild: {inputs: {claim: "21", path: "/in,puts"}, serviceAccount: {name: "22"}}
configuration: {existing: "23"}
`))
	require.NoError(t, tools.Validate(r.text))
	require.Equal(t, "null", r.workload().name())
	require.Equal(t, "123", r.pod().text("metadata", "labels", "app.kubernetes.io/name"))

	_, err = helm(t, valuesFiles(t)["everything"], written(t, `fullnameOverride: "123"`))
	require.ErrorContains(t, err, "/fullnameOverride")
}

// The version of Kubernetes that README.md asks for is what Helm holds the cluster to. Helm as Go
// installs it takes an old one for the cluster's, so make chart has to tell it.
func TestKubernetesVersion(t *testing.T) {
	t.Parallel()
	chart, err := os.ReadFile(filepath.Join(Chart(), "Chart.yaml"))
	require.NoError(t, err)
	require.Equal(t, ">=1.27.0-0", parsed(t, string(chart)).text("kubeVersion"))
	readme, err := os.ReadFile(filepath.Join(Chart(), "README.md"))
	require.NoError(t, err)
	require.Contains(t, string(readme), "Kubernetes 1.27 or newer")
	script, err := os.ReadFile(filepath.Join(Root(), "scripts", "chart.sh"))
	require.NoError(t, err)
	require.Equal(t, 2, strings.Count(string(script), ` --kube-version "$version" `), "lint and template")
}
