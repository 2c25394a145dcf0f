package archive

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"capper/internal/audit"
	"capper/internal/capping"
	"capper/internal/objects"
)

// CompactConfig holds the settings of a compaction.
type CompactConfig struct {
	Keep time.Duration // age of a file's last call above which the file is removed; 0: no file is
	Now  time.Time
	Dry  bool // only report what a compaction would change
}

// CompactReport counts the changes that a compaction made, or that a dry run would make.
type CompactReport struct {
	Files     int   `json:"files"` // that the index has
	Rewritten int   `json:"rewritten"`
	Users     int64 `json:"users"` // removed users: a user counts once for each record
	Dropped   int   `json:"dropped"`
	Leftovers int   `json:"leftovers"`    // files that an earlier run left
	Before    int64 `json:"bytes_before"` // bytes of all files
	After     int64 `json:"bytes_after"`
}

// A compaction removes an audit file without an index entry if the file is older than the constant settle.
const settle = time.Hour

// A run is the state of one compaction of an audit location.
type run struct {
	at      objects.Location
	archive *Archive
	config  CompactConfig
	erased  *Erased
	report  CompactReport
	faults  []error
}

// Compact removes old audit files from a location, and removes erased users from all other audit files. The argument a
// (an Archive) must read the location in the argument "at". If Compact cannot process an audit file, Compact continues
// with the other files. The error of Compact names all files that Compact could not process.
func Compact(ctx context.Context, at objects.Location, a *Archive, config CompactConfig) (CompactReport, error) {
	r := &run{at: at, archive: a, config: config}
	var err error
	if r.erased, err = a.Erased(ctx); err != nil {
		return r.report, err
	}
	entries, damaged, err := a.Entries(ctx, Query{})
	if err != nil {
		return r.report, err
	}
	if r.faults = damaged; len(damaged) == 0 { // with damaged index entries, the list of named files is incomplete
		if err := r.leftovers(ctx, entries); err != nil {
			return r.report, err
		}
	}
	slices.SortFunc(entries, func(a, b *Entry) int {
		return cmp.Or(cmp.Compare(a.Instance, b.Instance), cmp.Compare(a.Number, b.Number))
	})
	known, unread, err := a.Dropped(ctx)
	if err != nil {
		return r.report, err
	}
	r.faults = append(r.faults, unread...)
	noted := &notes{r, known}
	if err := noted.begin(ctx, entries); err != nil {
		return r.report, err
	}
	kept := map[string]bool{} // instances of which a file remains: all later files remain too
	for _, e := range entries {
		if ctx.Err() != nil {
			return r.report, ctx.Err()
		}
		r.report.Files++
		r.report.Before += e.Bytes
		switch {
		case !kept[e.Instance] && r.tooOld(e.To):
			err = r.drop(ctx, e)
		default:
			kept[e.Instance] = true
			err = r.rewrite(ctx, e)
		}
		if err != nil {
			r.faults = append(r.faults, err)
		}
	}
	r.faults = append(r.faults, noted.end(ctx, entries))
	return r.report, errors.Join(r.faults...)
}

func (r *run) tooOld(last capping.Instant) bool {
	return r.config.Keep > 0 && last.Time().Before(r.config.Now.Add(-r.config.Keep))
}

// The method drop removes an audit file that is too old, together with the file's index entry.
func (r *run) drop(ctx context.Context, e *Entry) error {
	r.report.Dropped++
	if r.config.Dry {
		return nil
	}
	if err := r.at.Delete(ctx, e.IndexKey); err != nil {
		return fmt.Errorf("remove %s: %w", e.IndexKey, err)
	}
	if err := r.at.Delete(ctx, e.Key); err != nil {
		return fmt.Errorf("remove %s: %w", e.Key, err)
	}
	return nil
}

// The method rewrite replaces an audit file with erased users by an audit file without these users.
func (r *run) rewrite(ctx context.Context, e *Entry) error {
	r.report.After += e.Bytes
	if latest := r.erased.Latest(); latest <= e.From {
		return nil
	}
	raw, e, err := r.archive.Bytes(ctx, e)
	if err != nil || raw == nil {
		return err
	}
	again, summary, users, err := r.without(raw)
	if err != nil {
		return &FileError{Key: e.Key, Err: err}
	}
	if users == 0 {
		return nil
	}
	r.report.Rewritten++
	r.report.Users += users
	r.report.After += int64(len(again)) - e.Bytes
	if r.config.Dry {
		return nil
	}
	return r.replace(ctx, e, again, summary)
}

// The method replace writes first the new audit file, and then the index entry that names the new file. At the end, the
// method replace removes the old file.
func (r *run) replace(ctx context.Context, e *Entry, raw []byte, summary *audit.Summary) error {
	entry := summary.Entry(raw)
	sealed, err := audit.Seal(entry)
	if err != nil {
		return err
	}
	if key := summary.IndexKey(); key != e.IndexKey {
		return fmt.Errorf(
			"audit index entry %s: the name must be %s according to the records in the audit file",
			e.IndexKey, key)
	}
	if _, err := r.at.Put(ctx, entry.Key, raw); err != nil {
		return fmt.Errorf("write %s: %w", entry.Key, err)
	}
	if err := r.at.Overwrite(ctx, e.IndexKey, sealed); err != nil {
		return fmt.Errorf("replace %s: %w", e.IndexKey, err)
	}
	if err := r.at.Delete(ctx, e.Key); err != nil {
		return fmt.Errorf("remove %s: %w", e.Key, err)
	}
	return nil
}

// The method "without" returns a copy of an audit file without the erased users, and the number of removed users.
func (r *run) without(raw []byte) (again []byte, summary *audit.Summary, users int64, err error) {
	reader, err := audit.NewReader(bytes.NewReader(raw))
	if err != nil {
		return nil, nil, 0, err
	}
	if err := reader.Header().IDs.Same(r.archive.ids); err != nil {
		return nil, nil, 0, err
	}
	encoder, again := audit.NewEncoder(make([]byte, 0, len(raw)), reader.Header())
	summary = audit.NewSummary(reader.Header())
	for {
		frame, err := reader.Next()
		if errors.Is(err, io.EOF) && reader.Ended() {
			return again, summary, users, nil
		}
		if err != nil {
			return nil, nil, 0, err
		}
		switch {
		case frame.Record != nil:
			users += r.erased.Apply(frame.Record)
			if again, _, err = encoder.AppendRecord(again, frame.Record); err != nil {
				return nil, nil, 0, err
			}
		case frame.Gap != nil:
			again = encoder.AppendGap(again, *frame.Gap)
		default:
			again = audit.AppendEnd(again, *frame.End)
		}
		summary.Add(frame)
	}
}

// The method "leftovers" removes audit files that no index entry names. An audit file without an index entry remains
// when a compaction stops between two steps. The method "leftovers" keeps a file that may be new: no index entry has
// its number, and its records are not too old.
func (r *run) leftovers(ctx context.Context, entries []*Entry) error {
	named, numbers := map[string]bool{}, map[string]bool{}
	number := func(instance string, n uint64) string { return fmt.Sprintf("%s-%d", instance, n) }
	for _, e := range entries {
		named[e.Key], numbers[number(e.Instance, e.Number)] = true, true
	}
	files, err := r.at.List(ctx, audit.RecordsPrefix)
	if err != nil {
		return fmt.Errorf("list files: %w", err)
	}
	for _, o := range files {
		if named[o.Key] || r.config.Now.Sub(o.ChangedAt) < settle {
			continue
		}
		raw, err := r.at.Read(ctx, o.Key, o.SizeBytes)
		if err != nil {
			continue
		}
		_, summary, _, err := r.without(raw)
		if err != nil {
			continue // `capper audit verify` reports this file
		}
		if e := summary.Entry(raw); !numbers[number(e.Instance, e.Number)] && !r.tooOld(capping.InstantOf(e.Last)) {
			continue
		}
		r.report.Leftovers++
		if r.config.Dry {
			continue
		}
		if err := r.at.Delete(ctx, o.Key); err != nil {
			return fmt.Errorf("remove %s: %w", o.Key, err)
		}
	}
	return nil
}
