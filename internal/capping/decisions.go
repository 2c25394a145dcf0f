package capping

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"capper/internal/parallel"
	"capper/internal/trace"
)

// Decisions holds the decision of a filter call for every user. All decisions of one call are made with one generation
// (published version) of segments and one policy.
type Decisions struct {
	Users      []UserID  // the users of the filter call
	Verdicts   []Verdict // by user
	Codes      []uint8   // by user: the segment as an index into Names plus 1; 0: no segment
	Names      []string  // the segments of the generation
	Generation string
	Policy     *Policy
	// Err is an error for operators with the reason why some users are Unavailable. Err is nil when no user is
	// Unavailable.
	Err error

	numbers  []uint32         // bitmap number by user, see Segments.Numbers
	groups   []uint32         // by user, an index into rulesets; nil: Codes holds these indexes
	rulesets []ruleset        // by group
	zones    []uint16         // by user, an index into places; nil: no decision depends on a user's time zone
	places   []*time.Location // first the policy's zone, for users in no time zone set, then the generation's zones
	withheld bool             // true if sends are withheld from some users
	kept     []int32          // indexes of the users that the store decides, ascending

	anyOutdated *atomic.Bool // see Batch.Outdated; nil: no user is outdated
}

// A ruleset holds the limits for one group of users in one call. For each limit, the ruleset also holds the Rule
// (prepared form of the limit) at the same index.
type ruleset struct {
	limits []*Limit
	rules  []Rule
	byZone bool // some of the limits depend on the user's time zone
}

// The method Filter decides a send for all its users. A user without a decision before the deadline of ctx is
// Unavailable.
func (c *Capper) Filter(ctx context.Context, send *Send) *Decisions {
	basis := send.Basis
	if basis == nil {
		basis = c.Basis()
	}
	var known []string
	live, ok := basis.segments.(Live)
	if ok {
		known = live.Versions()
	}
	d := c.decide(ctx, send, basis, known, 0)
	if d.anyOutdated != nil && d.anyOutdated.Load() {
		outdated, since := d.outdated()
		d.Err = errors.Join(d.Err, c.decideAgain(ctx, d, send, &Basis{live, basis.policy}, outdated, since))
	}
	return d
}

// The method "decide" decides a send with the generation (published version) of segments and the policy of the basis.
// The arguments "known" and "since" become Batch.Known and Batch.Since.
func (c *Capper) decide(ctx context.Context, send *Send, basis *Basis, known []string, since Instant) *Decisions {
	segments, policy := basis.segments, basis.policy
	d := &Decisions{
		Users: send.Users, Names: segments.Names(), Generation: segments.Generation(), Policy: policy.Policy,
		Verdicts: make([]Verdict, len(send.Users)), Codes: make([]uint8, len(send.Users)),
	}
	_, part := trace.Start(ctx, "look up segments")
	buffer := numberBuffers.Get().(*[]uint32)
	defer numberBuffers.Put(buffer)
	*buffer = slices.Grow((*buffer)[:0], len(send.Users))[:len(send.Users)]
	d.numbers = *buffer
	defer func() { d.numbers = nil }()
	segments.Numbers(d.Users, d.numbers)
	segments.Lookup(d.numbers, d.Codes)
	trace.SetInt(part, "capper.users", len(send.Users))
	part.End()
	hold, err := newWithholding(policy.Policy, segments, send, c.clock())
	if err != nil { // without the suppressed sets, no send is safe
		d.Err = err
		return d
	}
	now := send.At
	if now == 0 {
		now = InstantOf(c.clock())
	}
	d.lookUpZones(segments, policy, send)
	hold.apply(d, now)
	d.group(policy, send, now, c.widen)
	b := &Batch{
		Message: send.Message, Token: send.Message.Token(), Channel: send.Channel,
		Record: send.Record, At: send.At, Retention: policy.retention + c.widen, Since: since,
	}
	if hold.bySets() {
		d.anyOutdated = new(atomic.Bool)
		b.Known, b.Outdated = known, d.anyOutdated
	}
	d.Err = d.judge(ctx, c.store, b)
	hold.postpone(d)
	return d
}

// numberBuffers is a pool of buffers for the bitmap numbers of a call's users. After the decision of a call, another
// call may use the same buffer.
var numberBuffers = sync.Pool{New: func() any { return new([]uint32) }}

func numbersOf(segments Segments, users []UserID) []uint32 {
	numbers := make([]uint32, len(users))
	segments.Numbers(users, numbers)
	return numbers
}

// The method "outdated" returns the indexes of the users whose decisions are outdated, because API calls have changed
// sets since the decision. Some attempts for these users may have an unknown result; the result "since" is the time of
// the earliest such attempt.
func (d *Decisions) outdated() (at []int, since Instant) {
	since = Never
	for i := range d.Verdicts {
		if v := &d.Verdicts[i]; v.Outdated {
			at, since = append(at, i), min(since, v.FreesAt)
		}
	}
	return at, since
}

// decideAgain reads the latest changes that API calls made to sets, and then decides the users at the given indexes
// again. After decideAgain has read the changes, the instance has every change that was stored before the call began.
// For the second decision, the store need not compare the versions of live changes (changes of sets by API calls).
// Users whose live changes could not be read stay Unavailable.
func (c *Capper) decideAgain(ctx context.Context, d *Decisions, send *Send, basis *Basis, at []int,
	since Instant) error {
	again := *send
	again.Users = make([]UserID, len(at))
	for k, i := range at {
		again.Users[k], d.Verdicts[i] = d.Users[i], Verdict{}
	}
	renewed, err := renew(ctx, basis.segments.(Live), again.Users)
	var known []string // nil: the changes of all users are known
	if err != nil {
		err = fmt.Errorf("read the latest changes of sets (named groups of users): %w", err)
		known = renewed.Versions()
	}
	if since == Never {
		since = 0
	}
	decided := c.decide(ctx, &again, &Basis{renewed, basis.policy}, known, since)
	for k, i := range at {
		if !decided.Verdicts[k].Outdated {
			d.Verdicts[i] = decided.Verdicts[k]
		}
	}
	return errors.Join(err, decided.Err)
}

// The function "renew" reads the latest changes that API calls made to the sets of the generation (published version).
// The function "renew" takes at most half of the call's remaining time, so that the store can still decide the users
// whose changes are known.
func renew(ctx context.Context, segments Live, users []UserID) (Live, error) {
	if ends, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(ends)/2)
		defer cancel()
	}
	return segments.Renew(ctx, users)
}

// lookUpZones looks up the users' time zones if a limit or quiet hours for the send depend on time zones.
func (d *Decisions) lookUpZones(segments Segments, policy *inForce, send *Send) {
	if !send.Enforce || !policy.zones.onChannel(send.Channel) {
		return
	}
	d.places = append([]*time.Location{cmp.Or(d.Policy.Zone, time.UTC)}, segments.Zones()...)
	d.zones = make([]uint16, len(d.Users))
	segments.LookupZones(d.numbers, d.zones)
}

// The method "group" puts the users of a call into groups, so that all users of a group have the same rules.
func (d *Decisions) group(policy *inForce, send *Send, now Instant, widen time.Duration) {
	if !send.Enforce {
		d.rulesets = make([]ruleset, len(d.Names)+1)
		return
	}
	if calendars := policy.zones.calendarsOn(send.Channel); len(calendars) > 0 {
		g := grouping{d: d, channel: send.Channel, now: now, widen: widen, calendars: calendars}
		g.sort()
		return
	}
	d.rulesets = make([]ruleset, len(d.Names)+1)
	d.rulesets[0] = d.Policy.ruleset("", send.Channel, now, widen, nil)
	for i, name := range d.Names {
		d.rulesets[i+1] = d.Policy.ruleset(name, send.Channel, now, widen, nil)
	}
}

// The type "grouping" groups users by segment and time zone. Two time zones share their groups when the day, week or
// month that the limits use is the same in both zones. Users of a segment whose limits depend on no time zone share one
// group.
type grouping struct {
	d         *Decisions
	channel   Channel
	now       Instant
	widen     time.Duration
	calendars []Calendar

	zones   [][]uint32 // by zone, then by segment code: the group plus 1; nil: not computed yet
	periods map[zonePeriods][]uint32
	plain   []uint32 // by segment code: the group plus 1, for users whose limits depend on no time zone
}

// zonePeriods holds, for one time zone, the start and the end of the current day, week and month. The type zonePeriods
// contains only calendars that a limit uses.
type zonePeriods [2 * len(calendarUnits)]Instant

func (g *grouping) sort() {
	d := g.d
	g.zones, g.periods = make([][]uint32, len(d.places)), map[zonePeriods][]uint32{}
	g.plain = make([]uint32, len(d.Names)+1)
	d.groups = make([]uint32, len(d.Users))
	for i, code := range d.Codes {
		zone := d.zones[i]
		groups := g.zones[zone]
		if groups == nil {
			groups = g.ofZone(zone)
		}
		if groups[code] == 0 {
			groups[code] = g.add(i)
		}
		d.groups[i] = groups[code] - 1
	}
}

// ofZone returns the group number of each segment for one time zone. The slice that ofZone returns has one element for
// each segment code. Time zones with equal periods get the same slice from ofZone.
func (g *grouping) ofZone(zone uint16) []uint32 {
	var key zonePeriods
	for i, calendar := range g.calendars {
		key[2*i], key[2*i+1] = calendar.period(g.now, g.d.places[zone])
	}
	if g.periods[key] == nil {
		g.periods[key] = make([]uint32, len(g.d.Names)+1)
	}
	g.zones[zone] = g.periods[key]
	return g.zones[zone]
}

// The method "add" creates a group for user i and for all users with the same rules, and returns the group's number
// plus 1.
func (g *grouping) add(i int) uint32 {
	d, code := g.d, g.d.Codes[i]
	if g.plain[code] != 0 {
		return g.plain[code]
	}
	rules := d.Policy.ruleset(d.Segment(i), g.channel, g.now, g.widen, d.places[d.zones[i]])
	d.rulesets = append(d.rulesets, rules)
	if !rules.byZone {
		g.plain[code] = uint32(len(d.rulesets))
	}
	return uint32(len(d.rulesets))
}

// The method "judge" lets the store decide about the remaining users: those whose sends suppression, the holdout and
// quiet hours do not withhold.
func (d *Decisions) judge(ctx context.Context, store Store, b *Batch) error {
	if !d.withheld && d.groups == nil {
		b.Users, b.Groups, b.Rules = d.Users, d.Codes, rulesOf(d.rulesets)
		return store.Filter(ctx, b, d.Verdicts)
	}
	if !d.withheld {
		d.kept = make([]int32, len(d.Users))
		for i := range d.kept {
			d.kept[i] = int32(i)
		}
	}
	if len(d.kept) == 0 {
		return nil
	}
	if len(d.rulesets) <= maxGroups {
		return d.judgePart(ctx, store, *b, d.kept, 0)
	}
	parts := d.parts()
	faults := make([]error, len(parts))
	parallel.AtMost(maxParts, len(parts), func(k int) {
		if len(parts[k]) > 0 {
			faults[k] = d.judgePart(ctx, store, *b, parts[k], k*maxGroups)
		}
	})
	return errors.Join(faults...)
}

// maxParts is the largest number of batches of one call that the store decides at the same time.
const maxParts = 16

// The method "parts" splits the users of a call into batches for the store. All users of a group are in one batch. A
// call has more than one batch only if its users have very many different time zones and segments.
func (d *Decisions) parts() [][]int32 {
	parts := make([][]int32, (len(d.rulesets)+maxGroups-1)/maxGroups)
	for _, i := range d.kept {
		k := d.groupOf(int(i)) / maxGroups
		parts[k] = append(parts[k], i)
	}
	return parts
}

// judgePart lets the store decide one batch, which contains the users at the given indexes of the call. The argument
// "first" of judgePart is the number of the first group (users with equal rules) in the batch.
func (d *Decisions) judgePart(ctx context.Context, store Store, b Batch, at []int32, first int) error {
	b.Rules = rulesOf(d.rulesets[first:min(first+maxGroups, len(d.rulesets))])
	b.Users, b.Groups = make([]UserID, len(at)), make([]uint8, len(at))
	for k, i := range at {
		b.Users[k], b.Groups[k] = d.Users[i], uint8(d.groupOf(int(i))-first)
	}
	verdicts := make([]Verdict, len(at))
	err := store.Filter(ctx, &b, verdicts)
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

// The method "ruleset" returns the limits that apply to users of one segment on the channel. It also returns the Rule
// (prepared form) of each limit for one call.
func (p *Policy) ruleset(segment string, channel Channel, now Instant, widen time.Duration,
	zone *time.Location) (set ruleset) {
	limits := p.Limits(segment)
	for i := range limits {
		if limits[i].AppliesTo(channel) {
			set.limits = append(set.limits, &limits[i])
			set.rules = append(set.rules, limits[i].RuleIn(now, widen, zone))
			set.byZone = set.byZone || limits[i].byUserZone()
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

// Segment returns the segment of user i, or "" for a user in no segment.
func (d *Decisions) Segment(i int) string {
	if code := d.Codes[i]; code > 0 {
		return d.Names[code-1]
	}
	return ""
}

// Limit returns the limit that denied user i, or nil when no limit denied the user.
func (d *Decisions) Limit(i int) *Limit {
	if v := &d.Verdicts[i]; v.Outcome != Denied || v.By != ByLimit {
		return nil
	}
	return d.rulesets[d.groupOf(i)].limits[d.Verdicts[i].Rule]
}

// DeniedBy returns the name of the cause that denied user i: the name of a limit, or another reason, such as a
// suppressed set.
func (d *Decisions) DeniedBy(i int) string {
	if limit := d.Limit(i); limit != nil {
		return limit.Name
	}
	return d.Verdicts[i].By.Name()
}

// ShadowLimits returns the limits of user i. Bit k of the user's Verdict.Shadow belongs to the limit with the index k
// in the returned slice. ShadowLimits returns nil if no bit is set.
func (d *Decisions) ShadowLimits(i int) []*Limit {
	if d.Verdicts[i].Shadow == 0 {
		return nil
	}
	return d.rulesets[d.groupOf(i)].limits
}

// The method Set returns the suppressed set that denied user i, or "" when no set denied the user.
func (d *Decisions) Set(i int) string {
	if d.Verdicts[i].By != BySuppression { // the zero value is ByLimit
		return ""
	}
	return d.Policy.Suppress[d.Verdicts[i].Rule].Set
}

// Zone returns the time zone whose local time led to the denial of user i, or nil when the denial depended on no time
// zone.
func (d *Decisions) Zone(i int) *time.Location {
	switch v := &d.Verdicts[i]; v.By {
	case ByQuiet:
		if q := &d.Policy.Quiet[v.Rule]; !q.UserZone {
			return cmp.Or(q.Location, time.UTC)
		}
	case ByLimit:
		if limit := d.Limit(i); limit == nil || !limit.byUserZone() {
			return nil
		}
	default:
		return nil
	}
	return d.places[d.zones[i]]
}

// The function "missing" returns the error for a generation (published version) of segments that lacks sets which the
// policy requires.
func missing(generation string, sets []string) error {
	return fmt.Errorf(
		"generation (published version) %s of the segments lacks set %s, which the configuration requires",
		generation, strings.Join(sets, ", "))
}
