package charts

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/require"
)

// each runs a test under every file of values.
func each(t *testing.T, test func(t *testing.T, r *rendering)) {
	for name, file := range valuesFiles(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, render(t, file))
		})
	}
}

// Kubernetes and the Prometheus operator know every field.
func TestSchemas(t *testing.T) {
	t.Parallel()
	tools, err := Installed()
	require.NoError(t, err)
	each(t, func(t *testing.T, r *rendering) { require.NoError(t, tools.Validate(r.text)) })
}

// A field with a wrong name, a value of a wrong type and one that is missing are found, on every
// level: a check that accepts everything shows nothing.
func TestSchemasBite(t *testing.T) {
	t.Parallel()
	tools, err := Installed()
	require.NoError(t, err)
	text := string(render(t, valuesFiles(t)["everything"]).text)
	for right, wrong := range map[string]string{
		"readinessProbe:":            "readynessProbe:",
		"terminationGracePeriod":     "terminationGracefulPeriod",
		"unhealthyPodEviction":       "unhealthyPodsEviction",
		"concurrencyPolicy:":         "concurrency:",
		"averageUtilization: 60":     `averageUtilization: "60"`,
		"interval: 15s":              "intervall: 15s",
		"authorization:":             "authorisation:",
		"policyTypes:":               "policyType:",
		"onExitCodes: {":             "onExitCode: {",
		"apiVersion: policy/v1":      "apiVersion: policy/v1beta1",
		"  schedule: \"30 3 * * *\"": "  # no schedule",
	} {
		require.Contains(t, text, right)
		require.Error(t, tools.Validate([]byte(strings.Replace(text, right, wrong, 1))), wrong)
	}
}

var duration = func(t *testing.T, configuration object, keys ...string) time.Duration {
	d, err := time.ParseDuration(configuration.text(keys...))
	require.NoError(t, err)
	return d
}

func parsed(t *testing.T, text string) (o object) {
	t.Helper()
	require.NoError(t, yaml.Unmarshal([]byte(text), &o))
	return o
}

// A pod that stops has the time that capper takes for it.
func TestStopHasItsTime(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r *rendering) {
		c := parsed(t, r.configuration())
		least := duration(t, c, "server", "stop_delay") + duration(t, c, "server", "stop_timeout") +
			6*duration(t, c, "server", "call_timeout")
		grace := time.Duration(r.pod().number(t, "spec", "terminationGracePeriodSeconds")) * time.Second
		require.Greater(t, grace, least)
	})
}

// Probes ask what the service answers, where it listens, and by the protocol that it speaks.
func TestProbes(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r *rendering) {
		container := r.container()
		c := parsed(t, r.configuration())
		scheme := "HTTP"
		if c.at("server", "tls") != nil {
			scheme = "HTTPS"
		}
		for probe, path := range map[string]string{"startupProbe": "/healthz", "livenessProbe": "/healthz",
			"readinessProbe": "/readyz"} {
			require.Equal(t, map[string]any{"path": path, "port": "http", "scheme": scheme},
				container.at(probe, "httpGet"))
		}
		listening := map[string]string{}
		for _, port := range container.list("ports") {
			listening[port.text("name")] = ":" + strconv.Itoa(port.number(t, "containerPort"))
		}
		require.Equal(t, map[string]string{"http": c.text("server", "listen"),
			"admin": c.text("server", "admin_listen")}, listening)
	})
}

// What selects pods selects those of the service, and no other.
func TestSelectors(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r *rendering) {
		service := r.pod().object("metadata", "labels")
		selectors := map[string]object{"workload": r.workload().object("spec", "selector", "matchLabels")}
		for _, s := range r.all("Service") {
			selectors["service "+s.name()] = s.object("spec", "selector")
			for _, port := range s.list("spec", "ports") {
				require.Contains(t, []string{"http", "admin"}, port.text("targetPort"))
			}
		}
		for _, p := range r.all("PodDisruptionBudget") {
			selectors["budget"] = p.object("spec", "selector", "matchLabels")
		}
		for _, spread := range r.pod().list("spec", "topologySpreadConstraints") {
			selectors["spread "+spread.text("topologyKey")] = spread.object("labelSelector", "matchLabels")
		}
		for _, p := range r.all("NetworkPolicy") {
			if !strings.HasSuffix(p.name(), "-build") {
				selectors["policy"] = p.object("spec", "podSelector", "matchLabels")
			}
		}
		for what, selector := range selectors {
			require.Subset(t, map[string]any(service), map[string]any(selector), what)
			for _, job := range r.all("CronJob") {
				require.NotSubset(t, map[string]any(job.object("spec", "jobTemplate", "spec", "template", "metadata",
					"labels")), map[string]any(selector), what)
			}
		}
		for _, monitor := range r.all("ServiceMonitor") {
			require.True(t, slices.ContainsFunc(r.all("Service"), func(s object) bool {
				labels, selector := s.object("metadata", "labels"), monitor.object("spec", "selector", "matchLabels")
				for key, value := range selector {
					if labels[key] != value {
						return false
					}
				}
				return s.list("spec", "ports")[0].text("name") == monitor.list("spec", "endpoints")[0].text("port")
			}), "no service has what the monitor asks for")
		}
	})
}

// No budget keeps a node from being drained for ever.
func TestBudgetLetsPodsGo(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r *rendering) {
		for _, budget := range r.all("PodDisruptionBudget") {
			require.Positive(t, budget.number(t, "spec", "maxUnavailable"))
			require.Nil(t, budget.at("spec", "minAvailable"))
		}
		if strings.Contains(r.configuration(), "kind: embedded") {
			require.Empty(t, r.all("PodDisruptionBudget"), "one pod is all there is")
			require.Equal(t, 1, r.workload().number(t, "spec", "replicas"))
		}
	})
}

// Pods can do nothing but run one program, and what they mount is there.
func TestPodsAreConfined(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r *rendering) {
		pods := []object{r.pod()}
		for _, job := range r.all("CronJob") {
			pods = append(pods, job.object("spec", "jobTemplate", "spec", "template"))
		}
		for _, pod := range pods {
			require.Equal(t, true, pod.at("spec", "securityContext", "runAsNonRoot"))
			if !strings.Contains(t.Name(), "openshift") {
				require.Equal(t, 65532, pod.number(t, "spec", "securityContext", "runAsUser"))
			} else {
				require.Nil(t, pod.at("spec", "securityContext", "runAsUser"))
			}
			require.Equal(t, "RuntimeDefault", pod.text("spec", "securityContext", "seccompProfile", "type"))
			require.Equal(t, false, pod.at("spec", "automountServiceAccountToken"))
			volumes := []string{}
			for _, volume := range append(pod.list("spec", "volumes"),
				r.workload().list("spec", "volumeClaimTemplates")...) {
				volumes = append(volumes, volume.text("name")+volume.name())
			}
			for _, container := range pod.list("spec", "containers") {
				require.Equal(t, map[string]any{
					"allowPrivilegeEscalation": false, "privileged": false, "readOnlyRootFilesystem": true,
					"capabilities": map[string]any{"drop": []any{"ALL"}},
				}, container.at("securityContext"))
				for _, mount := range container.list("volumeMounts") {
					require.Contains(t, volumes, mount.text("name"))
					require.Nil(t, mount.at("subPath"), "a file that is mounted alone is never swapped")
				}
				require.Equal(t, container.text("resources", "requests", "memory"), container.text("resources",
					"limits", "memory"))
			}
			require.NotContains(t, string(r.text), "checksum/", "a restart is not what reloads")
			account := pod.text("spec", "serviceAccountName")
			require.True(t, slices.ContainsFunc(r.all("ServiceAccount"),
				func(o object) bool { return o.name() == account }), account)
		}
	})
}

// What opens sessions of the console, or Redis, or S3, is in Secrets.
func TestNoSecretInAConfigMap(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r *rendering) {
		for _, o := range r.all("ConfigMap") {
			for name, text := range o.object("data") {
				require.NotRegexp(t, `(?i)password:|secret_?(access)?_?key|BEGIN .*PRIVATE`, text)
				if strings.Contains(text.(string), "sha256") {
					require.Contains(t, text, "console: false", name)
				}
			}
		}
		for _, env := range r.container().list("env") {
			if regexp.MustCompile(`PASSWORD|SECRET|ACCESS_KEY`).MatchString(env.text("name")) {
				require.NotEmpty(t, env.text("valueFrom", "secretKeyRef", "name"))
				require.Nil(t, env.at("value"))
			}
		}
	})
}

// The limit of memory is that of docs/operating.md, worked out here by hand.
func TestMemoryFollowsTheFormula(t *testing.T) {
	t.Parallel()
	files := valuesFiles(t)
	for name, want := range map[string]int{
		// twice both bounds, 64 bytes a user, 150, generations of segments, connections, and the cache with 200
		"redis":      2*512 + 2*512 + 245 + 150 + 3*256 + 104,
		"everything": 2*1024 + 2*1024 + 489 + 150 + 4*512 + 26,
		"openshift":  2*512 + 2*512 + 245 + 150 + 3*256 + 104 + 1024 + 200,
	} {
		container := render(t, files[name]).container()
		require.Equal(t, strconv.Itoa(want)+"Mi", container.text("resources", "limits", "memory"), name)
		require.Equal(t, object{"name": "GOMEMLIMIT", "value": strconv.Itoa(want*9/10) + "MiB"},
			container.list("env")[0], name)
	}
}

// The rules that Prometheus is given are those of deploy/prometheus: the chart's file is a link to
// them, which helm follows, and holds when it packages.
func TestRules(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(Root(), "deploy", "prometheus", "capper.rules.yaml"))
	require.NoError(t, err)
	rules := render(t, valuesFiles(t)["everything"]).all("PrometheusRule")
	require.Len(t, rules, 1)
	require.NotEmpty(t, rules[0].list("spec", "groups"))
	require.Equal(t, parsed(t, string(text)).at("groups"), rules[0].at("spec", "groups"))
}

// Several pods over Redis; one with its volume over the embedded store; pods with volumes where
// records of the audit must outlive them.
func TestWorkloads(t *testing.T) {
	t.Parallel()
	files := valuesFiles(t)
	redis := render(t, files["redis"]).workload()
	require.Equal(t, "Deployment", redis.kind())
	require.Equal(t, 4, redis.number(t, "spec", "replicas"))
	require.Equal(t, 0, redis.number(t, "spec", "strategy", "rollingUpdate", "maxUnavailable"))
	embedded := render(t, files["embedded"]).workload()
	require.Equal(t, "StatefulSet", embedded.kind())
	require.Equal(t, "data", embedded.list("spec", "volumeClaimTemplates")[0].name())
	everything := render(t, files["everything"])
	require.Equal(t, "StatefulSet", everything.workload().kind())
	require.Nil(t, everything.workload().at("spec", "replicas"), "the autoscaler's")
	require.Equal(t, everything.workload().kind(), everything.all("HorizontalPodAutoscaler")[0].text("spec",
		"scaleTargetRef", "kind"))
	require.Equal(t, everything.workload().name(), everything.all("HorizontalPodAutoscaler")[0].text("spec",
		"scaleTargetRef", "name"))
}

// Roles in the place of keys: the annotations are there, and no key is.
func TestRoles(t *testing.T) {
	t.Parallel()
	r := render(t, valuesFiles(t)["role"])
	roles := map[string]string{}
	for _, account := range r.all("ServiceAccount") {
		roles[account.name()] = account.text("metadata", "annotations", "eks.amazonaws.com/role-arn")
	}
	require.Equal(t, map[string]string{
		"prod-capper":       "arn:aws:iam::111122223333:role/capper-reads-segments",
		"prod-capper-build": "arn:aws:iam::111122223333:role/capper-publishes-segments",
	}, roles)
	require.NotContains(t, string(r.text), "AWS_SECRET_ACCESS_KEY")
}

// The chart's table has every value, and no other.
func TestReadmeHasEveryValue(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(Chart(), "values.yaml"))
	require.NoError(t, err)
	readme, err := os.ReadFile(filepath.Join(Chart(), "README.md"))
	require.NoError(t, err)
	_, table, _ := strings.Cut(string(readme), "\n## Values\n")
	var listed []string
	for _, row := range regexp.MustCompile("(?m)^\\| (`[^|]+`) \\|").FindAllStringSubmatch(table, -1) {
		for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1) {
			listed = append(listed, name[1])
		}
	}
	var keys []string
	for key, value := range parsed(t, string(text)) {
		inner, nested := value.(map[string]any)
		if !nested || len(inner) == 0 || key == "config" {
			keys = append(keys, key)
			continue
		}
		for name := range inner {
			keys = append(keys, key+"."+name)
		}
	}
	require.ElementsMatch(t, keys, listed)
}
