package journal

import (
	"bytes"
	"errors"
	"io"
	"slices"

	"capper/internal/audit"
	"capper/internal/capping"
)

// The function finish reads an audit file. The result "closed" of the function finish holds the bytes to upload,
// including an end frame (last entry), and the result "summary" is for the index. If the writer of the file died, the
// function finish adds an end frame with the time "now" after the last complete frame. The result "closed" of the
// function finish is nil if the audit file has no records and the writer did not die. The error reports damage inside
// the file; the function finish keeps the frames before the damage.
func finish(file []byte, now capping.Instant) (closed []byte, summary *audit.Summary, err error) {
	r, err := audit.NewReader(bytes.NewReader(file))
	if err == nil {
		summary = audit.NewSummary(r.Header())
		err = readAll(r, summary)
	}
	if errors.As(err, new(*audit.TornError)) || errors.Is(err, io.EOF) {
		err = nil
	}
	if r == nil || r.Ended() && r.So().Last < r.Header().First { // the file has no record
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

// readAll reads all frames (entries) of an audit file, and returns the error that ended the reading.
func readAll(r *audit.Reader, s *audit.Summary) error {
	for {
		frame, err := r.Next()
		if err != nil {
			return err
		}
		s.Add(frame)
	}
}
