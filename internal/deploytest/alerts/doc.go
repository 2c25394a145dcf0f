// Package alerts tests the shipped rules and dashboards against a running service: deploy/prometheus has alert rules
// with their unit tests, and deploy/grafana has dashboards.
//
// This package also writes the dashboards. Each dashboard is a table of rows and panels (service.go, segments.go),
// which dashboard.go turns into JSON. After a change, `go test ./internal/deploytest/alerts -run TestDashboards
// -update` writes the files.
//
// The tests start a real Prometheus that scrapes two services, one on the embedded store and one on a Redis Cluster.
// The tests divide the durations in the rules by 120: every `for`, and every window in brackets. An hour becomes 30
// s, and five minutes become 2.5 s. Prometheus scrapes every half second, which stands for once a minute. The rest of
// each expression stays unchanged. A fault then fires after seconds the alerts that it fires in production after
// minutes.
package alerts
