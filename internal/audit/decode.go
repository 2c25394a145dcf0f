package audit

import (
	"errors"
	"fmt"
	"time"

	"capper/internal/bitmap"
	"capper/internal/capping"
)

func (r *Reader) record(c *cursor) *Record {
	x := &Record{Kind: Kind(c.byte()), Instance: r.header.Instance, Sequence: r.next, Widening: r.header.Widening}
	flags := c.byte()
	if x.Kind < Filter || x.Kind > Change || flags&^knownFlags != 0 {
		c.fail(fmt.Errorf("audit record has an unknown kind %d or unknown flags %d", x.Kind, flags))
	}
	x.Exempt = flags&flagExempt != 0
	if at := c.uvarint(); c.err == nil && at != r.next-r.header.First {
		c.fail(fmt.Errorf("audit record must have the sequence number %d, got %d", r.next, r.header.First+at))
	}
	if x.At = r.at + capping.Instant(c.varint()); x.At < 0 || x.At > capping.Never {
		c.fail(fmt.Errorf("audit record has invalid time %d", x.At))
	}
	x.Took = c.millis()
	x.Message.ID = r.messages.read(c)
	for _, to := range []*string{&x.Message.Namespace, &x.Client, &x.Key, &x.Generation, &x.Config} {
		*to = r.names.read(c)
	}
	x.Channel = capping.Channel(c.byte())
	if flags&flagAudience != 0 {
		if x.Audience = r.names.read(c); x.Audience == "" {
			c.fail(errors.New("audit record: the audience expression must not be empty"))
		}
	}
	r.contents(c, x)
	r.at, r.next, r.count = x.At, r.next+1, r.count+1
	return x
}

// The method "contents" reads the fields of a record that exist only for the record's kind of call.
func (r *Reader) contents(c *cursor, x *Record) {
	if x.Kind == Pace {
		x.Permits = r.permits(c)
		return
	}
	if x.Kind == Change {
		x.Change = &SetChange{Set: r.names.read(c), At: c.instant(), RequestID: c.text()}
		if c.err == nil && x.Change.Set == "" {
			c.fail(errors.New("audit record of a change to a set must name the set"))
		}
	}
	for n := c.elements(); n > 0 && c.err == nil; n-- {
		x.Groups = append(x.Groups, r.group(c))
	}
	if x.Kind != Filter {
		return
	}
	for n := c.elements(); n > 0 && c.err == nil; n-- {
		x.Segments = append(x.Segments, SegmentCount{
			Name: r.names.read(c), Requested: c.count(), Allowed: c.count(), Denied: c.count(), Unavailable: c.count(),
		})
	}
	for n := c.elements(); n > 0 && c.err == nil; n-- {
		x.Shadow = append(x.Shadow, Count{Name: r.names.read(c), Users: c.count()})
	}
}

func (r *Reader) group(c *cursor) (g Group) {
	b := c.byte()
	g.Outcome, g.By = Outcome(b&0xf), capping.Reason(b>>4)
	if g.Outcome == Denied {
		g.Limit = r.names.read(c)
	}
	if g.Outcome == Denied && g.By == capping.BySuppression {
		g.Set = r.names.read(c)
	}
	wide := !r.header.IDs.Dense()
	if wide {
		g.Images = c.images()
	} else {
		g.Users = readUsers(c)
	}
	if c.err == nil {
		if err := g.check(wide); err != nil {
			c.fail(err)
		}
	}
	return g
}

func readUsers(c *cursor) *bitmap.Bitmap {
	size := c.uvarint()
	if size&1 == 1 {
		return readFew(c, size>>1)
	}
	raw := c.bytes(size >> 1)
	if c.err != nil {
		return nil
	}
	users, err := bitmap.Read(raw)
	if err == nil && users.Cardinality() <= fewUsers {
		err = fmt.Errorf("a group of %d users in an audit record must be encoded as a list, not a bitmap",
			users.Cardinality())
	}
	if err != nil {
		c.fail(fmt.Errorf("users: %w", err))
	}
	return users
}

func readFew(c *cursor, n uint64) *bitmap.Bitmap {
	if n > fewUsers {
		c.fail(fmt.Errorf("a group of %d users in an audit record must be encoded as a bitmap, not a list", n))
	}
	ids := make([]uint32, 0, fewUsers)
	next := uint64(0)
	for ; n > 0 && c.err == nil; n-- {
		id := next + c.below(1<<32-1)
		if id > 1<<32-1 {
			c.fail(fmt.Errorf("audit record: user id %d is out of range", id))
		}
		ids, next = append(ids, uint32(id)), id+1
	}
	if c.err != nil {
		return nil
	}
	return bitmap.OfSorted(ids)
}

func (r *Reader) permits(c *cursor) *Permits {
	p := &Permits{}
	for n := c.elements(); n > 0 && c.err == nil; n-- {
		p.Pacers = append(p.Pacers, r.names.read(c))
	}
	p.Asked, p.Granted = c.count(), c.count()
	for _, to := range []*time.Duration{&p.First, &p.Last} {
		micros := c.varint()
		if micros > 1<<50 || micros < -(1<<50) {
			c.fail(fmt.Errorf(
				"audit record: a permit's send time must be within 36 years of the call, got %d microseconds",
				micros))
		}
		*to = time.Duration(micros) * time.Microsecond
	}
	p.Limited = r.names.read(c)
	return p
}
