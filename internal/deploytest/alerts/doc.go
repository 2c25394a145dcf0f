// Package alerts holds what is shipped for Prometheus and Grafana to what a running
// service serves: deploy/prometheus has rules and their unit tests, deploy/grafana dashboards.
//
// The dashboards are written by this package: a table of rows and panels for each
// (service.go, segments.go) becomes JSON (dashboard.go). After a change,
// `go test ./internal/deploytest/alerts -run TestDashboards -update` writes the files anew.
//
// Its tests start a real Prometheus that scrapes two services, one on the embedded store and one on a
// Redis Cluster. Time in the rules is divided: every `for` and every window in brackets
// becomes 1/120 of what it is (an hour is 30 s, five minutes 2.5 s), and scrapes come every
// half a second, as if once a minute. Nothing else of an expression is changed. So a fault fires
// after seconds what it fires in production after minutes.
package alerts
