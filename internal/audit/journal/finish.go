package journal

import (
	"bytes"
	"errors"
	"io"
	"slices"

	"capper/internal/audit"
	"capper/internal/capping"
)

// finish reads a file and is what is to be kept of it, with its end, and a summary of that.
// One whose writer died is closed behind its last whole frame, at now. closed is nil where it
// holds nothing and its writer did not die. The error is that it is damaged in the middle: what
// is before is kept.
func finish(file []byte, now capping.Instant) (closed []byte, summary *audit.Summary, err error) {
	r, err := audit.NewReader(bytes.NewReader(file))
	if err == nil {
		summary = audit.NewSummary(r.Header())
		err = readAll(r, summary)
	}
	if errors.As(err, new(*audit.TornError)) || errors.Is(err, io.EOF) {
		err = nil
	}
	if r == nil || r.Ended() && r.So().Last < r.Header().First { // not even one record
		return nil, nil, err
	}
	closed = file[:r.Offset()]
	if !r.Ended() {
		end := r.So()
		end.Recovered, end.Closed = true, now
		closed = audit.AppendEnd(slices.Clone(closed), end)
		summary.Add(audit.Frame{End: &end})
	}
	return closed, summary, err
}

// readAll reads all frames. The error is how that ended.
func readAll(r *audit.Reader, s *audit.Summary) error {
	for {
		frame, err := r.Next()
		if err != nil {
			return err
		}
		s.Add(frame)
	}
}
