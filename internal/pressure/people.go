package pressure

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"capper/internal/audit/numbering"
	"capper/internal/bitmap"
	"capper/internal/capping"
)

// The type people holds the number of messages of each user in one pass over the audit records.
type people struct {
	*Config
	out         *output
	from, until int // the pass counts pages with keys of at least from and below until
	pages       map[int]*page
	bytes       int64
	rows        map[rowKey]int // index of the row of a channel or namespace
	windows     []window       // windows in which limits count sends
	limits      []segmentLimits
	numbers     *numbering.Numbers
	adding      []*bitmap.Counts
	channelRow  int
	spaceRow    int
}

// A page holds the number of messages of each of 65,536 consecutive users.
type page struct {
	weeks   [][]bitmap.Counts // by row and week; row 0 counts all messages
	windows []bitmap.Counts
}

// A window selects the sends that a limit counts now, by the send's channel and time.
type window struct {
	after    capping.Instant
	channels capping.ChannelSet
}

// segmentLimits holds the limits of a segment, and the present windows of the limits. The calendar window of a limit
// may depend on the user's time zone. The field "windows" therefore has, for each limit, one entry for each time zone,
// beginning with the users in no time zone.
type segmentLimits struct {
	limits  []*capping.Limit
	windows [][]int
}

func newPeople(cfg *Config, out *output, from int) *people {
	p := &people{Config: cfg, out: out, from: from, until: bitmap.MaxBlocks, pages: map[int]*page{},
		rows: map[rowKey]int{}}
	for _, name := range cfg.names() {
		p.limits = append(p.limits, p.limitsOf(name))
	}
	return p
}

// The method "names" returns the segment names by code. The segment code 0 means no segment, and has the name "".
func (c *Config) names() []string {
	names := []string{""}
	if c.Segments != nil {
		names = append(names, c.Segments.Names()...)
	}
	return names
}

// zonesOf returns the time zones that users may have under a policy, beginning with the default time zone of the
// policy.
func (c *Config) zonesOf(l *capping.Limit, policy *capping.Policy) []*time.Location {
	zones := []*time.Location{cmp.Or(policy.Zone, time.UTC)}
	if l.Calendar != "" && l.UserZone && c.Segments != nil {
		zones = append(zones, c.Segments.Zones()...)
	}
	return zones
}

func (p *people) limitsOf(segment string) (s segmentLimits) {
	all := p.Policy.Limits(segment)
	for i := range all {
		l := &all[i]
		if l.Shadow || l.Max == 0 {
			continue
		}
		var windows []int
		for _, zone := range p.zonesOf(l, p.Policy) {
			rule := l.RuleIn(p.Until, p.Widen, zone)
			w := window{rule.After(p.Until), rule.Channels}
			at := slices.Index(p.windows, w)
			if at < 0 {
				at = len(p.windows)
				p.windows = append(p.windows, w)
			}
			windows = append(windows, at)
		}
		s.limits, s.windows = append(s.limits, l), append(s.windows, windows)
	}
	return s
}

// The method row returns the index of the row for a channel or namespace in the table of people. If the table already
// has mostRows rows, all further channels or namespaces share one row.
func (p *people) row(key rowKey) int {
	if row, known := p.rows[key]; known {
		return row
	}
	if len(p.rows) >= mostRows {
		key.name, key.channel = others, 0
		if row, known := p.rows[key]; known {
			return row
		}
	}
	p.rows[key] = 1 + len(p.rows)
	return p.rows[key]
}

// The method "counts" returns the counters of a page (65,536 users) that a send of the message at the given time
// changes.
func (p *people) counts(on *page, m *message, at capping.Instant, week int) []*bitmap.Counts {
	p.adding = p.adding[:0]
	if week >= 0 && m.counts {
		for _, row := range []int{0, p.channelRow, p.spaceRow} {
			for len(on.weeks) <= row {
				on.weeks = append(on.weeks, nil)
			}
			if on.weeks[row] == nil {
				on.weeks[row] = make([]bitmap.Counts, p.Weeks)
			}
			p.adding = append(p.adding, &on.weeks[row][week])
		}
	}
	for i := range p.windows {
		if w := &p.windows[i]; at > w.after && w.channels.Has(m.channel) {
			if on.windows == nil {
				on.windows = make([]bitmap.Counts, len(p.windows))
			}
			p.adding = append(p.adding, &on.windows[i])
		}
	}
	return p.adding
}

// The method use looks up the two table rows that count the sends of a message: the row of the channel and the row of
// the namespace.
func (p *people) use(m *message) {
	p.channelRow, p.spaceRow = p.row(rowKey{channel: m.channel, byChannel: true}), p.row(rowKey{name: m.Namespace})
}

// The method add adds a send of the message to the count of each user in the bitmap.
func (p *people) add(m *message, at capping.Instant, week int, users *bitmap.Bitmap) {
	p.use(m)
	for i := range users.Filled() {
		key := users.KeyAt(i)
		if key < p.from || key >= p.until {
			continue
		}
		on := p.pages[key]
		if on == nil {
			on = new(page)
			p.pages[key] = on
		}
		counts := p.counts(on, m, at, week)
		if len(counts) == 0 { // no counter needs the send
			continue
		}
		before := size(counts)
		bitmap.AddAt(users, i, counts...)
		p.bytes += size(counts) - before
	}
}

func size(counts []*bitmap.Counts) (bytes int64) {
	for _, c := range counts {
		bytes += c.SizeBytes()
	}
	return bytes
}

// The method remove subtracts the message's sends to the users in the bitmap from the counts. The method add must have
// added these sends before.
func (p *people) remove(m *message, at capping.Instant, week int, users *roaring.Bitmap) {
	p.use(m)
	var counts []*bitmap.Counts
	last := -1
	for it := users.Iterator(); it.HasNext(); {
		user := it.Next()
		key := int(user >> 16)
		if key < p.from || key >= p.until {
			continue
		}
		if key != last {
			counts, last = p.counts(p.pages[key], m, at, week), key
		}
		for _, c := range counts {
			c.Subtract(uint16(user))
		}
	}
}

// If the pass over the records needs too much memory, the method bound frees the upper half of the pages (65,536 users
// each). A further pass counts the users of the freed pages.
func (p *people) bound() {
	if p.bytes <= p.MemoryBytes || len(p.pages) < 2 {
		return
	}
	keys := slices.Sorted(maps.Keys(p.pages))
	p.until = keys[len(keys)/2]
	for _, key := range keys[len(keys)/2:] {
		for _, row := range p.pages[key].weeks {
			for i := range row {
				p.bytes -= row[i].SizeBytes()
			}
		}
		for i := range p.pages[key].windows {
			p.bytes -= p.pages[key].windows[i].SizeBytes()
		}
		delete(p.pages, key)
	}
}

// The method end adds the numbers of messages of all users of the pass to the output.
func (p *people) end(ctx context.Context) error {
	l := newLookup(p)
	for n, key := range slices.Sorted(maps.Keys(p.pages)) {
		if n%cancelledEvery == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		on := p.pages[key]
		l.load(key)
		p.spread(on, l)
		p.atLimits(key, on, l)
	}
	return ctx.Err()
}

// The method "spread" adds, for each number of messages, the number of users of a page (65,536 users) to the output.
func (p *people) spread(on *page, l *lookup) {
	for row, key := range p.rowKeys() {
		if row >= len(on.weeks) || on.weeks[row] == nil {
			continue
		}
		for week := range on.weeks[row] {
			c := &on.weeks[row][week]
			if row == 0 {
				for code, in := range l.segments {
					p.out.spread(rowKey{code: code, bySegment: true}, week).in.add(c, in)
				}
				continue
			}
			s := p.out.spread(key, week)
			s.out.add(c, l.segments[0])
			s.in.add(c, l.any)
		}
	}
}

// rowKeys returns the keys of all rows of the table, in the order of their indexes.
func (p *people) rowKeys() []rowKey {
	keys := make([]rowKey, 1+len(p.rows))
	for key, row := range p.rows {
		keys[row] = key
	}
	return keys
}

// atLimits counts the users of a page (65,536 users) who have reached a limit.
func (p *people) atLimits(key int, on *page, l *lookup) {
	if on.windows == nil {
		return
	}
	var at, zoned, anyLimit, found bitmap.Words
	for code, in := range l.segments {
		anyLimit.Clear()
		for i, limit := range p.limits[code].limits {
			found.Clear()
			for zone, w := range p.limits[code].windows[i] {
				on.windows[w].AtLeast(limit.Max, &at)
				at.And(in)
				if len(p.limits[code].windows[i]) > 1 {
					l.zone(zone, &zoned)
					at.And(&zoned)
				}
				found.Or(&at)
			}
			p.out.atLimit(code, i, found.Count())
			anyLimit.Or(&found)
			p.list(key, code, limit.Name, &found)
		}
		p.out.atLimit(code, len(p.limits[code].limits), anyLimit.Count())
		p.list(key, code, "", &anyLimit)
	}
}

// The method list adds users who have reached the requested limit to the caller's list.
func (p *people) list(key, code int, limit string, users *bitmap.Words) {
	if p.AtLimit == nil || p.AtLimit.Limit != limit || p.AtLimit.Segment != p.out.names[code] {
		return
	}
	if p.numbers == nil {
		p.out.blocks = append(p.out.blocks, users.Encode(key))
		return
	}
	var images []capping.UserID
	numbers := capping.AppendUsers(nil, users.AppendIDs(nil, key, bitmap.BlockIDs))
	p.out.images = append(p.out.images, p.numbers.Users(&images, numbers)...)
}

// A lookup holds the segments and time zones of the 65,536 users in a page.
type lookup struct {
	*people
	segments []*bitmap.Words // by code
	any      *bitmap.Words   // users in a segment
	zones    []uint16
	users    []capping.UserID
	images   []capping.UserID
	ids      []uint32
	numbers  []uint32
	codes    []uint8
	marks    []uint8
}

func newLookup(p *people) *lookup {
	l := &lookup{people: p, any: new(bitmap.Words)}
	for range p.names() {
		l.segments = append(l.segments, new(bitmap.Words))
	}
	if p.Segments == nil {
		l.segments[0].Fill()
		return l
	}
	l.users, l.ids = make([]capping.UserID, bitmap.BlockIDs), make([]uint32, bitmap.BlockIDs)
	l.numbers, l.codes = make([]uint32, bitmap.BlockIDs), make([]uint8, bitmap.BlockIDs)
	l.marks, l.zones = make([]uint8, bitmap.BlockIDs), make([]uint16, bitmap.BlockIDs)
	return l
}

// The method load reads the segments and time zones of the 65,536 users in a page.
func (l *lookup) load(key int) {
	if l.Segments == nil {
		return
	}
	for i := range l.ids {
		l.ids[i] = uint32(key<<16 | i)
		l.users[i] = capping.UserID(l.ids[i])
	}
	users, numbers := l.users, l.numbers
	if l.people.numbers != nil {
		known := min(bitmap.BlockIDs, l.people.numbers.Len()-key<<16)
		users = l.people.numbers.Users(&l.images, users[:known])
		for i := known; i < len(numbers); i++ {
			numbers[i] = math.MaxUint32
		}
	}
	l.Segments.Numbers(users, numbers[:len(users)])
	l.Segments.Lookup(numbers, l.codes)
	for code, words := range l.segments {
		for i, c := range l.codes {
			l.marks[i] = 0
			if int(c) == code {
				l.marks[i] = 1
			}
		}
		words.SetMarked(l.ids, l.marks)
	}
	l.any.Invert(l.segments[0])
	if len(l.Segments.Zones()) > 0 {
		l.Segments.LookupZones(numbers, l.zones)
	}
}

// The method zone sets the argument w to the users of the page who are in the given time zone. The zone 0 means no time
// zone.
func (l *lookup) zone(zone int, w *bitmap.Words) {
	for i, z := range l.zones {
		l.marks[i] = 0
		if int(z) == zone {
			l.marks[i] = 1
		}
	}
	w.SetMarked(l.ids, l.marks)
}
