package charts

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Values that make no sense are refused with the key, the value and the rule.
func TestRefusedValues(t *testing.T) {
	t.Parallel()
	files := valuesFiles(t)
	for values, want := range map[string][]string{
		"redis: replicas: 0":                          {"/replicas", "got 0, want 1"},
		"redis: config: {store: {kind: mysql}}":       {"/config/store/kind", "'embedded', 'redis'"},
		"redis: replica: 3":                           {"'replica' not allowed"},
		"redis: config: {limit: {}}":                  {"/config", "'limit' not allowed"},
		"redis: config: {server: {stop_delay: soon}}": {"/config/server/stop_delay", "'soon' does not match"},
		"redis: config: {server: {api_keys: [{client: a, id: b, sha256: 12, scopes: [read]}]}}": {
			"/config/server/api_keys/0/sha256"},
		"redis: podDisruptionBudget: {maxUnavailable: 0}": {
			"/podDisruptionBudget/maxUnavailable"},
		"redis: podDisruptionBudget: {maxUnavailable: 100%}": {
			"/podDisruptionBudget/maxUnavailable"},
		"redis: config: {server: {stop_delay: 10s}}": {
			"config.server.stop_delay: 10s: must be longer than stop.loadBalancerNotice, 10 s"},
		"redis: stop: {gracePeriod: 60}": {
			"stop.gracePeriod: 60: must be at least 90 s"},
		"redis: config: {server: {listen: ':80'}}": {
			`config.server.listen: ":80": must not be given: the chart sets it from service.port`},
		"redis: config: {store: {redis: {password_file: /x}}}": {
			`config.store.redis.password_file: "/x": must not be given: the chart sets it from redis.passwordSecret`},
		"redis: config: {server: {api_keys: null}}": {
			"config.server.api_keys: is required"},
		"redis: config: {limits: null}": {
			"config.limits: is required"},
		"redis: config: {segments: {source: ''}}": {
			"config.segments.source: is required"},
		"redis: config: {store: {redis: {addrs: null}}}": {
			"config.store.redis.addrs: is required"},
		"redis: configuration: {in: ConfigMap}": {
			"configuration.in: ConfigMap: only with config.console: false"},
		"redis: redis: {ca: {secret: a}}": {
			`redis.ca.configMap: "redis-ca": must not be given with redis.ca.secret`},
		"redis: autoscaling: {enabled: true, minReplicas: 12}": {
			"autoscaling.minReplicas: 12: must be at most autoscaling.maxReplicas, 10"},
		"redis: ingress: {enabled: true}":       {"ingress.hosts: is required"},
		"redis: networkPolicy: {enabled: true}": {"networkPolicy.api: is required", "networkPolicy.redis: is required"},
		"redis: networkPolicy: {enabled: true}\nconfig: {tracing: {endpoint: 'http://otel:4318'}}": {
			"networkPolicy.otlp: is required"},
		"redis: metrics: {serviceMonitor: {enabled: true}}": {
			"metrics.keySecret.name: is required"},
		"redis: segmentbuild: {enabled: true}": {
			"segmentbuild.build: is required"},
		"redis: image: {repository: null}": {
			"image.repository: is required"},
		"redis: cpu: {request: ''}": {"/cpu/request"},
		"redis: segmentbuild: {cpu: ''}": {
			"/segmentbuild/cpu"},
		"redis: config: {store: {redis: {password: x}}}": {
			"/config/store/redis", "'password' not allowed"},
		"redis: config: {store: {redis: {addrs: ['r']}}}": {
			"/config/store/redis/addrs/0"},
		"redis: config: {segments: {s3: {secret_key: x}}}": {
			"/config/segments/s3", "'secret_key' not allowed"},
		"redis: config: {segments: {s3: {endpoint: 'https://key:secret@s3'}}}": {
			"/config/segments/s3/endpoint"},
		"redis: config: {tracing: {endpoint: 'http://otel:4318', headers: a=b}}": {
			"/config/tracing", "'headers' not allowed"},
		"redis: extraEnv: [{name: AWS_SECRET_ACCESS_KEY, value: x}]": {
			"extraEnv: AWS_SECRET_ACCESS_KEY: must come from a Secret"},
		"redis: config: {limits: {default: {daily: -1}}}": {
			"/config/limits/default/daily", "got -1, want 0"},
		"redis: config: {limits: {default: {daily: 1001}}}": {
			"/config/limits/default/daily"},
		"redis: config: {limits: {default: {dayly: 1}}}": {
			"'dayly' not allowed"},
		"redis: config: {limits: {segments: {vip: [{name: day, max: -2, window: 24h}]}}}": {
			"/config/limits/segments/vip/0/max"},
		"redis: config: {limits: {segments: {vip: [{max: 2, window: 24h}]}}}": {
			"missing property 'name'"},
		"redis: segmentbuild: {schedule: '61 25 * * *'}": {
			"/segmentbuild/schedule"},
		"redis: segmentbuild: {schedule: '0 25 * * *'}": {"/segmentbuild/schedule"},
		"redis: segmentbuild: {schedule: '0 2 0 * *'}":  {"/segmentbuild/schedule"},
		"redis: segmentbuild: {schedule: '0 2 * *'}":    {"/segmentbuild/schedule"},
		"redis: memory: {limit: 100Mi}":                 {"memory.limit: 100Mi: must be at least 3315Mi"},
		"redis: persistence: null":                      {"missing property 'persistence'"},
		"embedded: redis: {ca: null}":                   {"missing property 'ca'"},
		"redis: probes: {startup: null}":                {"missing property 'startup'"},
		"embedded: replicas: 3": {"replicas: 3: must be 1, or left out, with " +
			"config.store.kind: embedded"},
		"redis: replicas: many": {"/replicas",
			"'many' does not match"},
		"embedded: autoscaling: {enabled: true}": {
			"autoscaling.enabled: true: only with config.store.kind: redis"},
		"embedded: config: {store: {redis: {addrs: ['a:1']}}}": {
			"config.store.redis: must not be given with config.store.kind: embedded"},
		"embedded: config: {segments: {source: /data}, server: {bounds: {body_bytes: 1000000}}}": {
			"/config/server/bounds/body_bytes"},
		"embedded: config: {segments: {source: /data}}\nsegmentbuild: {enabled: true, build: {a: b}}": {
			`config.segments.source: "/data": must be s3://`},
	} {
		name, text, _ := strings.Cut(values, ": ")
		_, err := helm(t, files[name], written(t, text))
		for _, part := range want {
			require.ErrorContains(t, err, part, values)
		}
	}
	_, err := helm(t)
	require.ErrorContains(t, err, "image.repository: is required: no image is published")
	require.ErrorContains(t, err, "config.segments.source: is required: s3://bucket/prefix, where segmentbuild "+
		"publishes")
}

// Schedules that Kubernetes takes are taken.
func TestSchedules(t *testing.T) {
	t.Parallel()
	file := valuesFiles(t)["everything"]
	for _, schedule := range []string{"@daily", "@hourly", "*/5 * * * *", "0,30 0-6/2 1,15 * mon-fri", "59 23 31 12 0",
		"7 07 01 JAN-mar ?"} {
		job := render(t, file, written(t, "segmentbuild: {schedule: '"+schedule+"'}")).all("CronJob")[0]
		require.Equal(t, schedule, job.text("spec", "schedule"))
	}
}
