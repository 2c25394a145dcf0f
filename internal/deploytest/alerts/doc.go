// Package alerts tests the alert rules and dashboards of the repository against a running service. The directory
// deploy/prometheus has the alert rules with their unit tests, and deploy/grafana has the dashboards.
//
// Package alerts also writes the dashboards. The Go source of a dashboard is a table of rows and panels (service.go,
// segments.go). The code in dashboard.go converts the table to JSON. After a change of a dashboard's Go code, `go test
// ./internal/deploytest/alerts -run TestDashboards -update` writes the JSON files of the dashboards.
//
// The tests start a real Prometheus that scrapes two services, one on the embedded store and one on a Redis Cluster.
// The tests divide the durations in the alert rules by 120: every "for", and every window in brackets. In the shortened
// rules, for example, an hour becomes 30 s, and five minutes become 2.5 s. Prometheus scrapes every half second, which
// corresponds to one scrape per minute in production. The tests change nothing else in the alert expressions. A fault
// therefore causes the same alerts as in production, but within seconds instead of minutes.
package alerts
