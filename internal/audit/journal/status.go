package journal

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"capper/client/api"
)

// A state holds the results of the latest flush (write to the disk) and of the latest upload of audit records.
type state struct {
	mu         sync.Mutex
	flushedAt  time.Time // all earlier records are on the disk
	uploadedAt time.Time
	flushFault error
	carryFault error
}

// The method "flushed" stores the result of a flush (write to the disk). The flush wrote all records that are older
// than the time "before". The zero time means "unknown". The result "recovered" of the method "flushed" is true if this
// flush succeeded and the previous flush failed.
func (s *state) flushed(before time.Time, err error) (recovered bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	recovered = s.flushFault != nil && err == nil
	if s.flushFault = err; err == nil && !before.IsZero() {
		s.flushedAt = before
	}
	return recovered
}

// The method "delivered" stores the result of an upload of audit files, for the journal's status.
func (s *state) delivered(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.carryFault = err
}

// The method "uploaded" stores the time at which an audit file reached the audit location.
func (s *state) uploaded(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.uploadedAt = at
}

// stateOK, stateBehind and stateLosing are the states of the audit in the result of Status: in order, delayed, and
// losing records.
const (
	stateOK     = "ok"
	stateBehind = "behind"
	stateLosing = "losing"
)

// Status returns the state of the audit, or nil for a nil journal.
func (j *Journal) Status() *api.AuditStatus {
	if j == nil {
		return nil
	}
	counts := j.tape.counts()
	j.state.mu.Lock()
	defer j.state.mu.Unlock()
	status := &api.AuditStatus{
		To: j.To, State: stateOK, Records: counts.records, Lost: counts.lost,
		WaitingBytes: j.waiting.Load(), WaitingFiles: j.carrier.waitingFiles(),
		FlushedAt: j.state.flushedAt.UTC(), UploadedAt: j.state.uploadedAt.UTC(),
		BehindSeconds: counts.behind.Seconds(),
	}
	for _, fault := range []error{j.state.carryFault, j.state.flushFault} {
		if fault != nil {
			status.State, status.Error = stateBehind, fault.Error()
		}
	}
	if counts.losing {
		status.State = stateLosing
	}
	return status
}

// The type "metrics" is a Prometheus collector that reads the status of the journal at each scrape.
type metrics struct {
	journal                                          *Journal
	records, lost, waiting, files, flushed, uploaded *prometheus.Desc
}

func newMetrics(j *Journal) *metrics {
	desc := func(name, help string) *prometheus.Desc { return prometheus.NewDesc(name, help, nil, nil) }
	return &metrics{
		journal: j,
		records: desc("capper_audit_records_total", "Number of calls recorded in the audit, the log of all decisions."),
		lost: desc("capper_audit_lost_total",
			"Number of calls missing from the audit (the log of all decisions) because a buffer was full."),
		waiting: desc("capper_audit_waiting_bytes",
			"Bytes of audit records on the local disk that are not yet uploaded."),
		files: desc("capper_audit_waiting_files",
			"Number of complete audit files on the local disk that are not yet uploaded."),
		flushed: desc("capper_audit_flushed_timestamp_seconds",
			"Unix time up to which all audit records are on the local disk; 0 before the first record."),
		uploaded: desc("capper_audit_uploaded_timestamp_seconds",
			"Unix time of the latest upload of an audit file; 0 before the first upload."),
	}
}

// Describe implements prometheus.Collector.
func (m *metrics) Describe(to chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{m.records, m.lost, m.waiting, m.files, m.flushed, m.uploaded} {
		to <- desc
	}
}

// Collect implements prometheus.Collector.
func (m *metrics) Collect(to chan<- prometheus.Metric) {
	s := m.journal.Status()
	counter := func(desc *prometheus.Desc, n uint64) {
		to <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(n))
	}
	gauge := func(desc *prometheus.Desc, n float64) {
		to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, n)
	}
	counter(m.records, s.Records)
	counter(m.lost, s.Lost)
	gauge(m.waiting, float64(s.WaitingBytes))
	gauge(m.files, float64(s.WaitingFiles))
	gauge(m.flushed, seconds(s.FlushedAt))
	gauge(m.uploaded, seconds(s.UploadedAt))
}

func seconds(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.UnixMilli()) / 1000
}
