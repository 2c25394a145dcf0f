package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"capper/internal/audit"
	"capper/internal/audit/archive"
	"capper/internal/bitmap"
	"capper/internal/capping"
	"capper/internal/parallel"
	"capper/internal/share"
)

// A pass collects the sends and releases of the users in some blocks of 65,536 ids, and checks these sends against the
// limits.
type pass struct {
	*work
	table
	ctx    context.Context
	first  int                // first block of the pass
	blocks [][]event          // events of each block, beginning with first, in the order of time
	images [][]capping.UserID // users of these events, where ids are not dense

	worldOf map[string]uint16
	recent  []loaded // generations in memory, the most recently used first
	words   bitmap.Words
	ids     []uint32
	numbers []uint32
	codes   []uint8
	zones   []uint16
}

// The type "loaded" is a segments generation (published version) that verify keeps in memory while it reads the audit
// records.
type loaded struct {
	world    uint16
	segments capping.Segments
}

// The type "work" is the state of one verification, which all passes over the audit records share.
type work struct {
	archive   *archive.Archive
	query     archive.Query
	config    Config
	counts    [bitmap.MaxBlocks]uint32 // events by block
	repeats   [bitmap.MaxBlocks]uint32 // users of repeated sends by block
	repeating bool                     // the passes read repeated sends
	inForce   []policy
	policyOf  map[string]uint16
	report    *Report
	erased    *archive.Erased
	mu        sync.Mutex // guards the counts of the first reading
	unsure    []span

	// The function expected receives the sends that the store must hold. If verify does not compare the audit with the
	// store, expected is nil.
	expected   func(ctx context.Context, p *pass, list []expectedSend) error
	users      map[capping.UserID]bool // only these users; nil: the users of the sample
	since, now capping.Instant
}

// The method count counts the sends of an audit record, when verify reads all files for the first time.
func (s *work) count(ctx context.Context, r *audit.Record) {
	s.notePolicy(ctx, r)
	for i := range r.Groups {
		g := &r.Groups[i]
		what, ok := happens(g)
		s.countRepeats(g)
		if !ok || what == repeated {
			continue
		}
		if what == sent {
			s.report.Sends += int64(g.Count())
		}
		countBlocks(g, &s.counts)
	}
}

// In an id image (64-bit hash of an id), the bits above the lowest imageBits bits are the number of the user's block.
const imageBits = 48

// countBlocks counts the users of a record's group in each block of 65,536 ids, and adds the numbers to the argument
// "counts".
func countBlocks(g *audit.Group, counts *[bitmap.MaxBlocks]uint32) {
	for _, image := range g.Images {
		counts[image>>imageBits]++
	}
	users := g.Users
	if users == nil {
		return
	}
	if users.Cardinality() <= few {
		for user := range users.All() {
			counts[user>>16]++
		}
		return
	}
	var w bitmap.Words
	for key := range users.Blocks() {
		switch users.Load(key, &w) {
		case bitmap.Some:
			counts[key] += uint32(w.Count())
		case bitmap.Everything:
			counts[key] += bitmap.BlockIDs
		}
	}
}

// For a bitmap with at most "few" users, a loop over the users is faster than a loop over the blocks.
const few = 64

// notePolicy notes that the policy of an audit record was in force at the time of the record.
func (s *work) notePolicy(ctx context.Context, r *audit.Record) {
	if r.Kind != audit.Filter {
		return
	}
	i, known := s.policyOf[r.Config]
	if !known {
		p := policy{version: r.Config, first: r.At}
		found, err := s.archive.Policy(ctx, r.Config)
		if err != nil {
			s.report.find(Finding{Kind: NoPolicy, Key: audit.PolicyKey(r.Config), Text: err.Error() +
				": sends under this policy are not checked"})
		} else {
			p.policy, p.retention = found, capping.Instant(found.Retention(0).Milliseconds())
		}
		i = uint16(len(s.inForce))
		s.policyOf[r.Config], s.inForce = i, append(s.inForce, p)
	}
	s.inForce[i].first = min(s.inForce[i].first, r.At)
	s.inForce[i].last = max(s.inForce[i].last, r.At+capping.Instant(r.Took.Milliseconds()))
}

// The method judge checks the sends of all users. The number of times that the method reads the audit records depends
// on the memory limit.
func (s *work) judge(ctx context.Context) error {
	s.useRepeats()
	for first := 0; first < len(s.counts); {
		events, end := 0, first
		for end < len(s.counts) && (events == 0 || events+int(s.counts[end]) <= s.config.Events) {
			events += int(s.counts[end])
			end++
		}
		if events > 0 {
			if err := s.newPass(first, end).run(ctx); err != nil {
				return err
			}
		}
		first = end
	}
	return nil
}

func (s *work) newPass(first, end int) *pass {
	p := &pass{
		work: s, first: first, blocks: make([][]event, end-first), worldOf: map[string]uint16{},
		table: table{policies: s.inForce, messages: map[messageKey]uint32{}, unsure: s.unsure},
	}
	wide := !s.archive.IDs().Dense()
	if wide {
		p.images = make([][]capping.UserID, end-first)
	}
	for i := range p.blocks {
		n := s.counts[first+i]
		if n > 0 {
			p.blocks[i] = make([]event, 0, n)
		}
		if n > 0 && wide {
			p.images[i] = make([]capping.UserID, 0, n)
		}
	}
	return p
}

func (p *pass) run(ctx context.Context) error {
	p.ctx = ctx
	for r, err := range p.archive.Records(ctx, p.query) {
		if err != nil {
			if errors.As(err, new(*archive.FileError)) {
				continue // reported by the first reading
			}
			return err
		}
		p.gather(r)
	}
	var mu sync.Mutex
	var list []expectedSend
	parallel.AtMost(runtime.GOMAXPROCS(0), len(p.blocks), func(i int) {
		if len(p.blocks[i]) == 0 { // as most of the 65,536 blocks
			return
		}
		j := &judge{table: &p.table, work: p.work, periods: periods{}}
		if p.images == nil {
			j.block(p.first+i, p.blocks[i])
		} else {
			j.imageBlock(p.blocks[i], p.images[i])
			p.images[i] = nil
		}
		p.blocks[i] = nil
		mu.Lock()
		defer mu.Unlock()
		p.report.Unjudged += j.unjudged
		for k := range j.found {
			if v := &j.found[k]; v.call.from <= p.config.AcceptedUntil {
				p.report.Accepted++
			} else {
				p.report.find(j.finding(v))
			}
		}
		list = append(list, j.expected...)
	})
	if ctx.Err() != nil || p.expected == nil {
		return ctx.Err()
	}
	return p.expected(ctx, p, list)
}

// asksFor reports whether verify asks the store for the sends of the given user.
func (s *work) asksFor(user capping.UserID) bool {
	switch {
	case s.expected == nil:
		return false
	case s.users != nil:
		return s.users[user]
	}
	return s.config.Store.Sample == nil || share.Has(s.config.Store.Sample, user)
}

// The method gather adds the effects of a recorded call on the sends of users in the current pass over the audit.
func (p *pass) gather(r *audit.Record) {
	number := uint32(len(p.calls))
	for i := range r.Groups {
		g := &r.Groups[i]
		what, ok := happens(g)
		if !ok || what == repeated && !p.repeating {
			continue
		}
		if uint32(len(p.calls)) == number {
			p.calls = append(p.calls, p.call(r))
		}
		if g.Users == nil {
			p.noteImages(number, what, p.within(g.Images))
			continue
		}
		p.users(g.Users, func(key int, ids []uint32) { p.note(number, what, key, ids) })
	}
}

func (p *pass) call(r *audit.Record) call {
	key := messageKey{r.Message.Namespace, r.Message.ID}
	message, known := p.messages[key]
	if !known {
		message = uint32(len(p.messages))
		p.messages[key], p.texts = message, append(p.texts, key)
	}
	c := call{
		from: r.At, to: r.At + capping.Instant(r.Took.Milliseconds()) + 1, sequence: r.Sequence,
		instance: p.instances.of(r.Instance),
		message:  message, channel: r.Channel, exempt: r.Exempt, slack: int32(r.Widening.Milliseconds()),
	}
	if r.Kind == audit.Filter {
		c.policy = p.policyOf[r.Config]
		q := p.policies[c.policy].policy
		if q != nil && (len(q.Segments) > 0 || q.UsesZones()) && !p.config.OnlyFiles {
			c.world = p.world(r.Generation)
			return c
		}
	}
	c.world = p.world("")
	return c
}

// The method world returns the index of a segments generation (published version) in verify's list, and loads the
// generation if necessary. The generation name "" means that the generation is unknown.
func (p *pass) world(generation string) uint16 {
	if generation != "" && p.config.Generation != "" {
		generation = p.config.Generation
	}
	i, known := p.worldOf[generation]
	if !known {
		i = uint16(len(p.worlds))
		p.worldOf[generation], p.worlds = i, append(p.worlds, world{name: generation})
		if generation != "" {
			p.load(i)
		}
	}
	return i
}

// The method load reads a segments generation (published version), and keeps the generation in memory. A few segments
// generations in memory suffice, because a pass reads the audit records in the order of time.
func (p *pass) load(i uint16) capping.Segments {
	w := &p.worlds[i]
	found, err := p.config.Segments(p.ctx, w.name)
	if err != nil {
		p.report.missing(w.name, err)
		return nil
	}
	w.known, w.names, w.zones = true, found.Names(), found.Zones()
	p.recent = append([]loaded{{i, found}}, p.recent[:min(len(p.recent), generationsHeld-1)]...)
	return found
}

// generationsHeld is the number of segments generations (published versions) that verify keeps in memory at the same
// time.
const generationsHeld = 2

func (p *pass) segmentsOf(i uint16) capping.Segments {
	for _, l := range p.recent {
		if l.world == i {
			return l.segments
		}
	}
	return nil
}

// The method "users" calls the function "do" for each block of 65,536 ids of the pass, with the given users who are in
// the block.
func (p *pass) users(users *bitmap.Bitmap, do func(key int, ids []uint32)) {
	end := p.first + len(p.blocks)
	if users.Cardinality() <= few {
		for user := range users.All() {
			if key := int(user >> 16); key >= p.first && key < end {
				do(key, append(p.ids[:0], user))
			}
		}
		return
	}
	for key := p.first; key < min(end, users.Blocks()); key++ {
		switch users.Load(key, &p.words) {
		case bitmap.Nothing:
			continue
		case bitmap.Everything:
			p.words.Fill()
		}
		p.ids = p.words.AppendIDs(p.ids[:0], key, bitmap.BlockIDs)
		do(key, p.ids)
	}
}

// The method "memberships" returns the codes of the segments and time zones of the users in one block, for at most
// bitmap.BlockIDs users. The argument "numbers" of the method "memberships" is a function that returns the numbers of
// the users in a segments generation (published version).
func (p *pass) memberships(
	number uint32, what happening, users int, numbers func(capping.Segments) []uint32,
) ([]uint8, []uint16) {
	if p.codes == nil {
		p.codes, p.zones = make([]uint8, bitmap.BlockIDs), make([]uint16, bitmap.BlockIDs)
	}
	codes, zones := p.codes[:users], p.zones[:users]
	clear(codes)
	clear(zones)
	c := &p.calls[number]
	if what == sent && p.worlds[c.world].known && !p.config.OnlyFiles {
		found := p.segmentsOf(c.world)
		if found == nil {
			found = p.load(c.world)
		}
		if found != nil {
			of := numbers(found)
			found.Lookup(of, codes)
			found.LookupZones(of, zones)
		}
	}
	return codes, zones
}

// The method note appends an event (effect of a call on a user's sends) for each given user. All users are in one block
// of 65,536 ids.
func (p *pass) note(number uint32, what happening, key int, ids []uint32) {
	codes, zones := p.memberships(number, what, len(ids), func(capping.Segments) []uint32 { return ids })
	events := p.blocks[key-p.first]
	for i, user := range ids {
		if p.config.OnlyFiles && !p.asksFor(capping.UserID(user)) {
			continue
		}
		events = append(events, event{number, uint16(user), zones[i], codes[i], what})
	}
	p.blocks[key-p.first] = events
}

// The method "within" returns the given id images (64-bit hashes) that belong to the current pass over the audit.
func (p *pass) within(images []capping.UserID) []capping.UserID {
	place := func(block int) int {
		if block == bitmap.MaxBlocks {
			return len(images)
		}
		i, _ := slices.BinarySearch(images, capping.UserID(block)<<imageBits)
		return i
	}
	return images[place(p.first):place(p.first+len(p.blocks))]
}

// noteImages works like the method note, for users with id images (64-bit hashes) instead of dense ids. The given id
// images may belong to several of the blocks that the pass covers.
func (p *pass) noteImages(number uint32, what happening, images []capping.UserID) {
	for part := range slices.Chunk(images, bitmap.BlockIDs) {
		codes, zones := p.memberships(number, what, len(part), func(s capping.Segments) []uint32 {
			p.numbers = slices.Grow(p.numbers[:0], len(part))[:len(part)]
			s.Numbers(part, p.numbers)
			return p.numbers
		})
		for i, image := range part {
			if p.config.OnlyFiles && !p.asksFor(image) {
				continue
			}
			at := int(image>>imageBits) - p.first
			p.blocks[at] = append(p.blocks[at], event{call: number, zone: zones[i], segment: codes[i], what: what})
			p.images[at] = append(p.images[at], image)
		}
	}
}

// imageBlock checks the sends of the users in one block of id images (64-bit hashes). The user of events[i] is
// images[i].
func (j *judge) imageBlock(events []event, images []capping.UserID) {
	order := make([]uint32, len(events))
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(a, b uint32) int { // keeps each user's events in the order of time
		return cmp.Or(cmp.Compare(images[a], images[b]), cmp.Compare(a, b))
	})
	var own []event
	var list []send
	for begin := 0; begin < len(order); {
		user := images[order[begin]]
		own = own[:0]
		for ; begin < len(order) && images[order[begin]] == user; begin++ {
			own = append(own, events[order[begin]])
		}
		list = j.sendsOf(own, list)
		j.user(user, list)
	}
}

// The method block checks the sends of the users in one block of 65,536 dense ids.
func (j *judge) block(key int, events []event) {
	starts := make([]uint32, bitmap.BlockIDs+1)
	for i := range events {
		starts[int(events[i].low)+1]++
	}
	for i := range bitmap.BlockIDs {
		starts[i+1] += starts[i]
	}
	sorted, at := make([]event, len(events)), starts[:bitmap.BlockIDs]
	for i := range events { // a stable sort keeps each user's events in the order of time
		sorted[at[events[i].low]] = events[i]
		at[events[i].low]++
	}
	var list []send
	for begin := 0; begin < len(sorted); {
		end := begin + 1
		for end < len(sorted) && sorted[end].low == sorted[begin].low {
			end++
		}
		list = j.sendsOf(sorted[begin:end], list)
		j.user(capping.UserID(key<<16|int(sorted[begin].low)), list)
		begin = end
	}
}

// The method user checks the sends of a user against the limits, and notes the sends that the store should have.
func (j *judge) user(user capping.UserID, sends []send) {
	if !j.config.OnlyFiles {
		j.judge(user, recordedOnly(sends))
	}
	if j.asksFor(user) {
		j.owes(user, sends)
	}
}

func (j *judge) finding(v *violation) Finding {
	c := v.call
	message, user := j.texts[c.message], j.named(v.user)
	return Finding{
		Kind: OverSend, Instance: j.instances.list[c.instance], Sequence: c.sequence, At: c.from.Time(), User: user,
		Limit:   v.limit.Name,
		Message: message.id, Namespace: message.namespace, Channel: j.policies[c.policy].policy.ChannelName(c.channel),
		Text: fmt.Sprintf("user %s received more than %d sends within %s, the maximum of limit %s of configuration %s",
			user, v.limit.Max, v.limit.Span(), v.limit.Name, j.policies[c.policy].version),
	}
}
