// Package alerts tests the alert rules and dashboards of the repository against a running service. The directory
// deploy/prometheus has the alert rules with their unit tests, and deploy/grafana has the dashboards.
//
// This package also writes the dashboards. The Go source of a dashboard is a table of rows and panels (service.go,
// segments.go), which dashboard.go converts to JSON. After a change of a dashboard's Go code, `go test
// ./internal/deploytest/alerts -run TestDashboards -update` writes the JSON files of the dashboards.
//
// The tests start a real Prometheus that scrapes two services, one on the embedded store and one on a Redis Cluster.
// The tests divide the durations in the alert rules by 120: every "for", and every window in brackets. In the tests, an
// hour of an alert rule becomes 30 s, and five minutes become 2.5 s. Prometheus scrapes every half second, which
// corresponds to one scrape per minute in production. Apart from durations, the tests leave each alert expression
// unchanged. Because the tests shorten the durations in alert rules, a fault fires within seconds the same alerts as
// within minutes in production.
package alerts
