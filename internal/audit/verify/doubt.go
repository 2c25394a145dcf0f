package verify

import (
	"context"
	"errors"
	"slices"

	"capper/internal/audit"
	"capper/internal/audit/archive"
	"capper/internal/capping"
)

// The type "doubts" finds sends that may be missing in the store because of a release whose record was lost. If an
// instance is killed, the records of its last second are lost, and the record of a release may be one of them.
type doubts struct {
	*comparison
	work *work // buffers of the last read
}

// mostMessages is the maximum number of messages for which verify requests counts from the store.
const mostMessages = 1000

// The method settle shortens the list of missing sends: the method removes sends that may be missing because of a lost
// release record.
//
// For each message, the store counts the released sends. If the store has counted n more released sends of a message
// than the audit contains, the audit has lost the records of n releases. If at most n sends of the message are missing,
// the lost records of the n releases explain all missing sends. If the store has no count for the message, lost audit
// records after the send explain the missing send. If more sends are missing than the lost records of crashed instances
// can explain, verify reports the missing sends.
func (d *doubts) settle(ctx context.Context) error {
	byMessage := map[capping.Message]int{}
	for i := range d.missing {
		byMessage[d.missing[i].Message]++
	}
	if len(byMessage) > mostMessages {
		return nil
	}
	explained, uncounted := map[capping.Message]bool{}, map[capping.Message]bool{}
	for message, missing := range byMessage {
		lost, counted, err := d.lost(ctx, message)
		if err != nil {
			return err
		}
		explained[message], uncounted[message] = counted && lost >= int64(missing), !counted
	}
	mayBeLost := func(m *MissingSend) bool { return uncounted[m.Message] && d.hole(m) }
	pool := 0
	for i := range d.missing {
		if mayBeLost(&d.missing[i]) {
			pool++
		}
	}
	few := pool <= lostReleases*len(d.work.unsure)
	before := len(d.missing)
	d.missing = slices.DeleteFunc(d.missing, func(m MissingSend) bool {
		return explained[m.Message] || few && mayBeLost(&m)
	})
	d.report.Doubtful += int64(before - len(d.missing))
	return nil
}

// The method "hole" reports whether audit records after the given send may be missing. The record of the send's release
// may be one of the missing records.
func (d *doubts) hole(m *MissingSend) bool {
	return slices.ContainsFunc(d.work.unsure, func(u span) bool { return u.from <= m.asked && u.to >= m.At })
}

// The method "lost" returns the number of released sends of the message that the store has counted and the audit does
// not contain. The result "counted" of the method "lost" is false if the store knows at most a lower bound of the
// number of released sends.
func (d *doubts) lost(ctx context.Context, message capping.Message) (lost int64, counted bool, err error) {
	if d.Released == nil {
		return 0, false, nil
	}
	released, channels, counted, err := d.Released(ctx, message)
	if err != nil {
		return 0, false, err
	}
	known, bulk, err := d.known(ctx, message, int64(max(channels, 1)))
	if err != nil {
		return 0, false, err
	}
	return released - known, counted || bulk && channels == 0, nil
}

// The method "known" returns the maximum number of released sends of the message according to the audit. The result
// "bulk" of the method "known" is true if a call for the message had enough users for the store to count its sends.
func (d *doubts) known(
	ctx context.Context, message capping.Message, channels int64,
) (released int64, bulk bool, err error) {
	q := archive.Query{Message: &message, Kinds: []audit.Kind{audit.Filter, audit.Release}}
	for r, err := range d.work.archive.Records(ctx, q) {
		if errors.As(err, new(*archive.FileError)) {
			continue
		}
		if err != nil {
			return 0, false, err
		}
		users := int64(0)
		for i := range r.Groups {
			g := &r.Groups[i]
			if users += int64(g.Count()); g.Outcome != audit.Released &&
				g.Outcome != audit.ReleaseUnavailable {
				continue
			}
			each := int64(1)
			if r.Channel == 0 {
				each = channels
			}
			released += each * int64(g.Count())
		}
		bulk = bulk || r.Kind == audit.Filter && users >= capping.BulkUsers
	}
	return released, bulk, nil
}
