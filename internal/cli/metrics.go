package cli

import (
	"fmt"
	"io"
	"time"

	"capper/internal/audit/verify"
	"capper/internal/terminal"
)

// writeMetrics writes the counts of a verification report to a file in the text format of Prometheus.
func writeMetrics(path string, r *verify.Report, begun, ended time.Time) error {
	return terminal.WriteFile(path, func(w io.Writer) error {
		m := &metricsFile{to: w}
		m.family("capper_audit_verify_timestamp_seconds", "Unix time at which the latest verification of the audit "+
			"ended.")
		m.sample("", "", ended.Unix())
		m.family("capper_audit_verify_duration_seconds", "Duration of the latest verification of the audit, in "+
			"seconds.")
		m.sample("", "", int64(ended.Sub(begun).Seconds()))
		m.family("capper_audit_verify_findings", "Number of findings of the latest verification of the audit, by "+
			"kind.")
		for _, kind := range verify.Kinds() {
			m.sample("kind", kind, int64(r.Found[kind]))
		}
		if s := r.Store; s != nil {
			m.family("capper_audit_verify_store_timestamp_seconds",
				"Unix time at which the latest comparison of the store with the audit ended.")
			m.sample("", "", ended.Unix())
			m.family("capper_audit_verify_store_sends", "Number of sends in the latest comparison of the store with "+
				"the audit, by result.")
			for _, one := range []struct {
				result string
				n      int64
			}{
				{"recorded", s.Recorded}, {"missing", s.Missing}, {"unrecorded", s.Unrecorded},
				{"doubtful", s.Doubtful}, {"changed", s.Changed}, {"forgotten", s.Forgotten},
				{"unanswered", s.Unanswered}, {"not_asked", s.NotAsked},
			} {
				m.sample("result", one.result, one.n)
			}
		}
		return m.err
	})
}

// metricsFile writes gauges to a file in the text format of Prometheus.
type metricsFile struct {
	to   io.Writer
	name string
	err  error
}

func (m *metricsFile) family(name, help string) {
	m.name = name
	m.print("# HELP %s %s\n# TYPE %s gauge\n", name, help, name)
}

func (m *metricsFile) sample(label, value string, n int64) {
	if label == "" {
		m.print("%s %d\n", m.name, n)
		return
	}
	m.print("%s{%s=%q} %d\n", m.name, label, value, n)
}

func (m *metricsFile) print(format string, args ...any) {
	if m.err == nil {
		_, m.err = fmt.Fprintf(m.to, format, args...)
	}
}
