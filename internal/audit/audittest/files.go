// Package audittest writes audit files, policies and erasures to a location, for tests.
package audittest

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/audit"
	"capper/internal/capping"
	"capper/internal/objects"
)

// Writer writes the audit files of one instance.
type Writer struct {
	Instance string
	Widening time.Duration // Header.Widening of the next files
	IDs      audit.IDs     // kind and key of the user ids in the next files
	at       objects.Location
	file     uint64
	next     uint64
}

// NewWriter returns a Writer that writes audit files as the instance with the number n to a location.
func NewWriter(at objects.Location, n int) *Writer {
	return &Writer{Instance: fmt.Sprintf("%016x", n), at: at, next: 1}
}

// The method Roll writes a complete audit file with the given frames (records), and its index entry, and returns the
// index entry.
func (w *Writer) Roll(t testing.TB, frames ...audit.Frame) audit.Entry {
	t.Helper()
	return w.put(t, frames, audit.End{})
}

// The method Die writes an audit file whose writer died. The end of the file says that another process closed the file
// at the instant "closed".
func (w *Writer) Die(t testing.TB, closed capping.Instant, frames ...audit.Frame) audit.Entry {
	t.Helper()
	return w.put(t, frames, audit.End{Recovered: true, Closed: closed})
}

func (w *Writer) put(t testing.TB, frames []audit.Frame, end audit.End) audit.Entry {
	t.Helper()
	raw, summary := w.encode(t, !end.Recovered, frames)
	if end.Recovered {
		end.Records, end.Last = uint64(len(frames)), w.next-1
		raw = audit.AppendEnd(raw, end)
		summary.Add(audit.Frame{End: &end})
	}
	entry := summary.Entry(raw)
	sealed, err := audit.Seal(entry)
	require.NoError(t, err)
	_, err = w.at.Put(t.Context(), entry.Key, raw)
	require.NoError(t, err)
	_, err = w.at.Put(t.Context(), summary.IndexKey(), sealed)
	require.NoError(t, err)
	return entry
}

// The method Open writes an audit file that its writer has not closed, and cuts off the last bytes of the file.
func (w *Writer) Open(t testing.TB, cut int, frames ...audit.Frame) (key string) {
	t.Helper()
	raw, _ := w.encode(t, false, frames)
	key = fmt.Sprintf("%s%s/%d%s", audit.OpenPrefix, w.Instance, w.file, audit.FileExtension)
	require.NoError(t, w.at.Overwrite(t.Context(), key, raw[:len(raw)-cut]))
	return key
}

func (w *Writer) encode(t testing.TB, closed bool, frames []audit.Frame) ([]byte, *audit.Summary) {
	t.Helper()
	w.file++
	header := audit.Header{Instance: w.Instance, Number: w.file, Begun: begun(frames), First: w.next,
		Widening: w.Widening, IDs: w.IDs}
	e, raw := audit.NewEncoder(nil, header)
	summary := audit.NewSummary(header)
	for _, f := range frames {
		if f.Gap != nil {
			raw = e.AppendGap(raw, *f.Gap)
		} else {
			var err error
			raw, _, err = e.AppendRecord(raw, f.Record)
			require.NoError(t, err)
		}
		summary.Add(f)
	}
	w.next = e.Next()
	if closed {
		raw = e.AppendEnd(raw)
	}
	return raw, summary
}

func begun(frames []audit.Frame) capping.Instant {
	for _, f := range frames {
		if f.Record != nil {
			return f.Record.At
		}
	}
	return 0
}

// The function Frames converts records to the frames (entries) of an audit file.
func Frames(records ...*audit.Record) (frames []audit.Frame) {
	for _, r := range records {
		frames = append(frames, audit.Frame{Record: r})
	}
	return frames
}

// The function Policy writes the policy of a configuration version to the audit location.
func Policy(t testing.TB, at objects.Location, version, yaml string) {
	t.Helper()
	require.NoError(t, at.Overwrite(t.Context(), audit.PolicyKey(version), audit.SealPolicy([]byte(yaml))))
}

// Erase writes an erasure of users with dense ids (32-bit numbers) to the audit location.
func Erase(t testing.TB, at objects.Location, n uint64, when capping.Instant, users ...capping.UserID) {
	t.Helper()
	EraseOf(t, at, audit.IDs{}, n, when, users...)
}

// EraseOf writes an erasure of users, with ids of any kind, to the audit location.
func EraseOf(
	t testing.TB, at objects.Location, ids audit.IDs, n uint64, when capping.Instant, users ...capping.UserID,
) {
	t.Helper()
	sealed, err := audit.Seal(audit.NewErasure(ids, users, when.Time()))
	require.NoError(t, err)
	require.NoError(t, at.Overwrite(t.Context(), audit.ErasedKey("0000000000000000", n), sealed))
}
