package verify

import (
	"context"
	"errors"
	"slices"

	"capper/internal/audit"
	"capper/internal/audit/archive"
	"capper/internal/capping"
)

// doubts sorts out missing sends that a release may have given back whose record is lost: an instance that is
// killed loses the records of its last second.
type doubts struct {
	*comparison
	work *work // of the last reading
}

// mostMessages is of how many messages the store is asked for counts.
const mostMessages = 1000

// settle takes those out of missing that a lost release may explain.
//
// The store counts what was given back of a message. As many more as the audit knows of may be missing. Where
// the store keeps no count, a release may be lost where the audit has a hole after the send. More than a
// crash can have given back is no doubt.
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

// hole reports whether the audit may lack a release of the send.
func (d *doubts) hole(m *MissingSend) bool {
	return slices.ContainsFunc(d.work.unsure, func(u span) bool { return u.from <= m.asked && u.to >= m.At })
}

// lost is how many more sends of the message the store has given back than the audit knows of. counted is
// false where the store need not have counted the message, or only knows a lower bound.
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

// known is how many sends of the message the audit knows, at most, to have been given back. bulk: a call was
// large enough for the store to have counted the message.
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
			if users += int64(g.Users.Cardinality()); g.Outcome != audit.Released &&
				g.Outcome != audit.ReleaseUnavailable {
				continue
			}
			each := int64(1)
			if r.Channel == 0 {
				each = channels
			}
			released += each * int64(g.Users.Cardinality())
		}
		bulk = bulk || r.Kind == audit.Filter && users >= capping.BulkUsers
	}
	return released, bulk, nil
}
