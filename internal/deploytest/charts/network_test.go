package charts

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// policed are values with a network policy over Redis.
const policed = `
networkPolicy: {enabled: true, api: [{podSelector: {}}], redis: [{podSelector: {}}], otlp: [{podSelector: {}}],
    metrics: [{podSelector: {}}]}
`

// egress are the ports that the policy of each pod opens, in the order of its rules, DNS first.
func egress(t *testing.T, r *rendering) (ports map[string][][]int) {
	t.Helper()
	ports = map[string][][]int{}
	for _, policy := range r.all("NetworkPolicy") {
		for _, rule := range policy.list("spec", "egress") {
			var open []int
			for _, port := range rule.list("ports") {
				open = append(open, port.number(t, "port"))
			}
			require.NotEmpty(t, open, "no ports are all ports")
			ports[policy.name()] = append(ports[policy.name()], open)
		}
	}
	return ports
}

// A policy opens the ports that the configuration names, and those that are given beside it.
func TestPolicyOpensWhatIsNamed(t *testing.T) {
	t.Parallel()
	for values, want := range map[string][][]int{
		"": {{53, 53}, {6379}, {443}, {4318}},
		"config: {store: {redis: {addrs: ['r:6380', 'q:6381', '[fd00::1]:6381']}}}": {{53, 53}, {6380, 6381}, {443},
			{4318}},
		"config: {segments: {s3: {endpoint: 'https://minio.storage:9000/'}}}": {{53, 53}, {6379}, {9000},
			{4318}},
		"config: {segments: {s3: {endpoint: 'http://minio.storage'}}}": {{53, 53}, {6379}, {80},
			{4318}},
		"config: {tracing: {endpoint: 'http://otel.tracing:4317'}}": {{53, 53}, {6379}, {443},
			{4317}},
		"config: {tracing: {endpoint: 'https://otel.tracing/v1'}}": {{53, 53}, {6379}, {443},
			{443}},
		"extraEnv: [{name: AWS_ENDPOINT_URL_S3, value: 'http://minio.storage:9001'}]": {{53, 53}, {6379}, {9001},
			{4318}},
		"extraEnv: [{name: HTTPS_PROXY, value: 'proxy.example.com:3128'}]": {{53, 53}, {6379}, {443, 3128},
			{4318}},
		"networkPolicy: {redisPorts: [7000, 6379], s3Port: 8443, otlpPort: 14318}": {{53, 53}, {6379, 7000},
			{443, 8443}, {14318}},
		"networkPolicy: {extraEgress: [{to: [{podSelector: {}}], ports: [{port: 9}]}]}": {{53, 53}, {6379}, {443},
			{4318}, {9}},
		"openshift: true": {{53, 53, 5353, 5353}, {6379}, {443}, {4318}},
	} {
		r := render(t, valuesFiles(t)["redis"], written(t, policed), written(t, values))
		require.Equal(t, want, egress(t, r)["prod-capper"], values)
	}
	built := egress(t, render(t, valuesFiles(t)["everything"]))["prod-capper-build"]
	require.Equal(t, [][]int{{53, 53}, {443}, {80}}, built)
}

// What a policy would lock out is refused.
func TestPolicyLocksNobodyOut(t *testing.T) {
	t.Parallel()
	for values, want := range map[string]string{
		"networkPolicy: {metrics: []}\n" +
			"metrics: {keySecret: {name: a}, serviceMonitor: {enabled: true}}": "networkPolicy.metrics: is required",
		"config: {store: {redis: {sentinel_master: one}}}": "networkPolicy.redisPorts: is required",
		"configuration: {existing: a}\n" +
			"config: {store: {redis: {addrs: null}}}": "networkPolicy.redisPorts: is required",
		"networkPolicy: {extraEgress: [{form: 1}]}": "'form' not allowed",
	} {
		_, err := helm(t, valuesFiles(t)["redis"], written(t, policed), written(t, values))
		require.ErrorContains(t, err, want, values)
	}
}
