package archive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"capper/internal/audit"
)

// The type "notes" lists, for each instance, the audit files that compactions have removed. From the notes, `capper
// audit verify` knows whether a compaction removed a missing audit file, or whether the file is lost.
type notes struct {
	*run
	known *Dropped
}

// The method begin stores the numbers of the audit files that the compaction will remove, before the compaction removes
// the first file. After the method begin has stored the numbers, `capper audit verify` treats every other missing audit
// file as lost. The argument "entries" of the method begin must be sorted by instance and number. If no notes exist,
// the method begin assumes that an earlier version of capper removed the missing first audit files of each instance.
func (n *notes) begin(ctx context.Context, entries []*Entry) error {
	through := map[string]uint64{}
	for instance, d := range n.known.All() {
		through[instance] = d.Through
	}
	adopt := !n.known.Noted && len(n.faults) == 0 // a damaged entry is not missing
	if adopt {
		if err := n.adopt(ctx, entries, through); err != nil {
			return err
		}
	}
	kept := map[string]bool{}
	for _, e := range entries {
		if kept[e.Instance] = kept[e.Instance] || !n.tooOld(e.To); !kept[e.Instance] {
			through[e.Instance] = max(through[e.Instance], e.Number)
		}
	}
	if n.config.Dry {
		return nil
	}
	for instance, number := range through {
		if number == n.known.Through(instance) {
			continue
		}
		if err := n.write(ctx, audit.Dropped{Instance: instance, Through: number}); err != nil {
			return err
		}
	}
	if !adopt {
		return nil
	}
	return n.write(ctx, audit.Dropped{})
}

// If an earlier version of capper compacted a location without notes, the method adopt notes that the missing first
// audit files of each instance were removed. The method adopt omits audit files that exist but have no index entry.
func (n *notes) adopt(ctx context.Context, entries []*Entry, through map[string]uint64) error {
	named := map[string]bool{}
	for _, e := range entries {
		named[e.Key] = true
		if _, seen := through[e.Instance]; !seen {
			through[e.Instance] = e.Number - 1
		}
	}
	files, err := n.at.List(ctx, audit.RecordsPrefix)
	if err != nil {
		return fmt.Errorf("list files: %w", err)
	}
	for _, o := range files {
		if named[o.Key] {
			continue
		}
		raw, err := n.at.Read(ctx, o.Key, o.SizeBytes)
		if err != nil {
			continue
		}
		if r, err := audit.NewReader(bytes.NewReader(raw)); err == nil {
			h := r.Header()
			through[h.Instance] = min(through[h.Instance], h.Number-1)
		}
	}
	return nil
}

func (n *notes) write(ctx context.Context, d audit.Dropped) error {
	d.At = n.config.Now.UTC()
	sealed, err := audit.Seal(d)
	if err != nil {
		return err
	}
	if err := n.at.Overwrite(ctx, audit.DroppedKey(d.Instance), sealed); err != nil {
		return fmt.Errorf("write the list of removed audit files: %w", err)
	}
	return nil
}

// noteKept is the time for which the note about an instance's removed audit files remains after the last removal. If an
// instance writes audit files again after its note was deleted, `capper audit verify` reports the removed files as
// missing.
const noteKept = 366 * 24 * time.Hour

// The method end removes the note of an instance whose audit files were all removed, if the last removal is longer ago
// than noteKept.
func (n *notes) end(ctx context.Context, entries []*Entry) (err error) {
	left := map[string]bool{}
	for _, e := range entries {
		left[e.Instance] = true
	}
	for instance, d := range n.known.All() {
		if !left[instance] && !n.config.Dry && n.config.Now.Sub(d.At) > noteKept {
			err = errors.Join(err, n.at.Delete(ctx, audit.DroppedKey(instance)))
		}
	}
	return err
}
