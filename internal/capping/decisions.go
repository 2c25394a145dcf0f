package capping

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Decisions is what was decided of a Send. All of it comes from one
// generation and one policy.
type Decisions struct {
	Users      []UserID  // those of the Send
	Verdicts   []Verdict // by user
	Codes      []uint8   // segment by user: 0 none, else index into Names plus 1
	Names      []string  // the generation's segments
	Generation string
	Policy     *Policy
	// Err says why users are unavailable, for operators; nil when none is.
	Err error

	groups   []uint16         // by user, an index into rulesets; nil: Codes are
	rulesets []ruleset        // by group
	zones    []uint16         // by user, an index into places; nil: nobody's time zone matters
	places   []*time.Location // time zones: that of users in none, then those of the generation
	marks    []uint8          // by user, what withholds the send; nil: nothing does from anybody
}

// ruleset is the limits that judge the sends of one group of users in one call,
// and the rules made of them, index by index.
type ruleset struct {
	limits []*Limit
	rules  []Rule
}

// Filter decides a send. What the deadline of ctx leaves open is Unavailable.
func (c *Capper) Filter(ctx context.Context, send *Send) *Decisions {
	segments, policy := c.segments(), c.policy.Load()
	d := &Decisions{
		Users: send.Users, Names: segments.Names(), Generation: segments.Generation(), Policy: policy,
		Verdicts: make([]Verdict, len(send.Users)), Codes: make([]uint8, len(send.Users)),
	}
	now := send.At
	if now == 0 {
		now = InstantOf(c.clock())
	}
	segments.Lookup(send.Users, d.Codes)
	hold, err := newWithholding(policy, segments, send)
	if err != nil { // nobody may be sent to before it is known who must not be
		d.Err = err
		return d
	}
	d.lookUpZones(segments, send)
	hold.apply(d, now)
	d.group(send, now, c.widen)
	d.Err = d.judge(ctx, c.store, &Batch{
		Message: send.Message, Token: send.Message.Token(), Channel: send.Channel,
		Record: send.Record, At: send.At, Retention: policy.Retention(c.widen),
	})
	hold.postpone(d)
	return d
}

// lookUpZones finds the users' time zones, if any rule of the send needs them.
func (d *Decisions) lookUpZones(segments Segments, send *Send) {
	if !send.Enforce || !d.Policy.needsZones(send.Channel) {
		return
	}
	d.places = append([]*time.Location{cmp.Or(d.Policy.Zone, time.UTC)}, segments.Zones()...)
	d.zones = make([]uint16, len(d.Users))
	segments.LookupZones(d.Users, d.zones)
}

// group sorts the users by the rules that they have.
func (d *Decisions) group(send *Send, now Instant, widen time.Duration) {
	if !send.Enforce {
		d.rulesets = make([]ruleset, len(d.Names)+1)
		return
	}
	if !d.Policy.limitsByZone(send.Channel) {
		d.rulesets = append(d.rulesets, d.Policy.ruleset("", send.Channel, now, widen, nil))
		for _, name := range d.Names {
			d.rulesets = append(d.rulesets, d.Policy.ruleset(name, send.Channel, now, widen, nil))
		}
		return
	}
	d.groups = make([]uint16, len(d.Users))
	classes := newZoneClasses(d.places, now)
	known := map[uint32]uint16{}
	for i := range d.Users {
		class := classes.of(d.zones[i])
		key := uint32(d.Codes[i])<<16 | uint32(class)
		group, ok := known[key]
		if !ok {
			group = uint16(len(d.rulesets))
			known[key] = group
			d.rulesets = append(d.rulesets, d.Policy.ruleset(d.Segment(i), send.Channel, now, widen, d.places[d.zones[i]]))
		}
		d.groups[i] = group
	}
}

// zoneClasses tells time zones in which the periods of all calendars are the same
// as one: they have the same rules.
type zoneClasses struct {
	places  []*time.Location
	now     Instant
	classes []uint16 // by place, plus 1; 0: not known yet
	known   map[[6]Instant]uint16
}

func newZoneClasses(places []*time.Location, now Instant) *zoneClasses {
	return &zoneClasses{places: places, now: now, classes: make([]uint16, len(places)), known: map[[6]Instant]uint16{}}
}

func (z *zoneClasses) of(zone uint16) uint16 {
	if z.classes[zone] == 0 {
		var periods [6]Instant
		for i, calendar := range []Calendar{CalendarDay, CalendarWeek, CalendarMonth} {
			periods[2*i], periods[2*i+1] = calendar.period(z.now, z.places[zone])
		}
		if _, ok := z.known[periods]; !ok {
			z.known[periods] = uint16(len(z.known))
		}
		z.classes[zone] = z.known[periods] + 1
	}
	return z.classes[zone] - 1
}

// judge lets the store decide the users from whom nothing withholds the send.
func (d *Decisions) judge(ctx context.Context, store Store, b *Batch) error {
	if d.marks == nil && d.groups == nil {
		b.Users, b.Groups, b.Rules = d.Users, d.Codes, rulesOf(d.rulesets)
		return store.Filter(ctx, b, d.Verdicts)
	}
	var faults []error
	for first := 0; first < len(d.rulesets); first += maxGroups { // more than one turn only with very many time zones
		part := *b
		part.Rules = rulesOf(d.rulesets[first:min(first+maxGroups, len(d.rulesets))])
		faults = append(faults, d.judgePart(ctx, store, &part, first))
	}
	return errors.Join(faults...)
}

// judgePart lets the store decide the users of the groups from first on.
func (d *Decisions) judgePart(ctx context.Context, store Store, b *Batch, first int) error {
	var at []int32
	for i, user := range d.Users {
		group := d.groupOf(i) - first
		if group < 0 || group >= len(b.Rules) || d.marks != nil && d.marks[i] != 0 {
			continue
		}
		at = append(at, int32(i))
		b.Users = append(b.Users, user)
		b.Groups = append(b.Groups, uint8(group))
	}
	if len(at) == 0 {
		return nil
	}
	verdicts := make([]Verdict, len(at))
	err := store.Filter(ctx, b, verdicts)
	for k, i := range at {
		d.Verdicts[i] = verdicts[k]
	}
	return err
}

func rulesOf(rulesets []ruleset) [][]Rule {
	rules := make([][]Rule, len(rulesets))
	for i := range rulesets {
		rules[i] = rulesets[i].rules
	}
	return rules
}

// ruleset resolves the limits of a segment for one call.
func (p *Policy) ruleset(segment string, channel Channel, now Instant, widen time.Duration, zone *time.Location) (set ruleset) {
	limits := p.Limits(segment)
	for i := range limits {
		if limits[i].AppliesTo(channel) {
			set.limits = append(set.limits, &limits[i])
			set.rules = append(set.rules, limits[i].RuleIn(now, widen, zone))
		}
	}
	return set
}

func (d *Decisions) groupOf(i int) int {
	if d.groups == nil {
		return int(d.Codes[i])
	}
	return int(d.groups[i])
}

// Segment is the segment of user i; "" for none.
func (d *Decisions) Segment(i int) string {
	if code := d.Codes[i]; code > 0 {
		return d.Names[code-1]
	}
	return ""
}

// Limit is the limit that denied user i; nil where no limit did.
func (d *Decisions) Limit(i int) *Limit {
	if d.Verdicts[i].By != ByLimit {
		return nil
	}
	return d.rulesets[d.groupOf(i)].limits[d.Verdicts[i].Rule]
}

// ShadowLimits is the limits that user i had a bit of Verdict.Shadow for: limit k by bit k.
func (d *Decisions) ShadowLimits(i int) []*Limit { return d.rulesets[d.groupOf(i)].limits }

// Set is the set that denied user i; "" where none did.
func (d *Decisions) Set(i int) string {
	if d.Verdicts[i].By != BySuppression {
		return ""
	}
	return d.Policy.Suppress[d.Verdicts[i].Rule].Set
}

// Zone is the time zone by which user i was denied; nil where none mattered.
func (d *Decisions) Zone(i int) *time.Location {
	switch v := &d.Verdicts[i]; v.By {
	case ByQuiet:
		if q := &d.Policy.Quiet[v.Rule]; !q.UserZone {
			return cmp.Or(q.Location, time.UTC)
		}
	case ByLimit:
		if !d.Limit(i).UserZone {
			return nil
		}
	default:
		return nil
	}
	return d.places[d.zones[i]]
}

// missing is that the generation lacks sets without which nobody may be sent to.
func missing(generation string, sets []string) error {
	return fmt.Errorf("generation %s has no set %s, which the policy needs", generation, strings.Join(sets, ", "))
}
