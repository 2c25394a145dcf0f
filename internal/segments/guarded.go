package segments

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"

	"capper/internal/bitmap"
	"capper/internal/capping"
	"capper/internal/objects"
)

// DefaultMayLose is the default percentage of users who may leave a guarded set (set with a limit on lost users) when a
// service replaces the generation (published version) in use.
const DefaultMayLose = 0.1

// zoneMayLose and zonesMayLose limit the percentage of users who may lose their time zone from one generation
// (published version) to the next.
const (
	zoneMayLose  = 50 // of the users of one zone; not lower, because one of two users in a zone is already half
	zonesMayLose = 5  // of the users of all zones
)

// Guarded limits the users whom a set may lose from one generation (published version) to the next. If a set loses more
// users than Guarded allows, the service rejects the next generation. The zero value of Guarded guards no set.
type Guarded struct {
	// MayLose contains, for each guarded set, the percentage of users who may leave the set when a new generation
	// replaces the one in use. If the percentage is 100, every loss is allowed, and the service does not compare the
	// set.
	MayLose map[string]float64
	// If Zones is true, each time zone set must remain, and most users of time zone sets must remain in some time zone
	// set.
	Zones bool
}

func (g *Guarded) isEmpty() bool { return len(g.MayLose) == 0 && !g.Zones }

func (g *Guarded) equal(other *Guarded) bool {
	return g.Zones == other.Zones && maps.Equal(g.MayLose, other.MayLose)
}

// The function Allowed converts a limit in per cent to the number of users who may leave a set with the given number of
// users.
func Allowed(users uint64, percent float64) uint64 {
	const rounding = 1e-6 // in users, so that 0.1 % of 1,000 is 1 despite binary fractions
	return min(users, uint64(float64(users)*percent/100+rounding))
}

// Loss describes the users whom one guarded set (set with a limit on lost users) lost between two generations
// (published versions).
type Loss struct {
	Set    string
	Before uint64
	// Left is the number of users who left the set. For a time zone set, Left does not count users who moved to another
	// time zone set.
	Left    uint64
	Allowed uint64 // maximum number of users who may leave
	// Accepted is the number of users who left the set by approved changes in the manifest (index of a generation).
	Accepted uint64
	// Vanished is true if the next generation lacks the set, without an approved change in the manifest.
	Vanished bool
	// Empty is true if the set has no user in the next generation.
	Empty bool
	// Overruled is the number of users whom API calls added to the set, but whom the next generation would remove. The
	// set in the next generation is newer than these API calls, but lacks the users.
	Overruled uint64
	AsOf      time.Time // time up to which the set in the next generation reflects all changes
}

// mayOverrule is a maximum number of users. A new generation (published version) may lack up to mayOverrule users whom
// API calls added to a set, even if the set's own limit is lower. A build may rightly lack a few of these users, for
// example because the users subscribed again elsewhere.
const mayOverrule = 1000

// The method Zone reports whether the set that lost users is a time zone set.
func (l *Loss) Zone() bool { return strings.HasPrefix(l.Set, ZonePrefix) }

func (l *Loss) exceeds() bool { return l.loses() || l.overrules() }

// The method "loses" reports whether the set lost more users since the earlier generation (published version) than the
// limit and approved changes allow.
func (l *Loss) loses() bool { return l.Vanished || l.Left > l.Allowed+l.Accepted }

// The method "overrules" reports whether the next generation (published version) would remove too many users whom API
// calls added to the set.
func (l *Loss) overrules() bool { return l.Overruled > max(l.Allowed, mayOverrule) }

func (l *Loss) String() string {
	switch {
	case !l.loses() && l.overrules():
		return fmt.Sprintf("API calls added %d users to set %s, "+
			"but the build with the later as_of %s lacks these users, and may lack at most %d",
			l.Overruled, l.Set, l.AsOf.Format(time.RFC3339), max(l.Allowed, mayOverrule))
	case l.Vanished && !l.Zone():
		return fmt.Sprintf("set %s with its %d users is missing", l.Set, l.Before)
	case l.Vanished:
		return fmt.Sprintf("set %s with its %d users is missing, but a rule needs the time zones of users",
			l.Set, l.Before)
	case l.Zone():
		return fmt.Sprintf("%d of %d users in set %s lose their time zone, but at most %d may lose it",
			l.Left, l.Before, l.Set, l.Allowed+l.Accepted)
	case l.Empty:
		return fmt.Sprintf("set %s is empty: all %d users left, but at most %d may leave",
			l.Set, l.Before, l.Allowed+l.Accepted)
	}
	return fmt.Sprintf("%d of %d users (%s %%) left set %s, but at most %d may leave",
		l.Left, l.Before, PercentText(100*float64(l.Left)/float64(l.Before)), l.Set, l.Allowed+l.Accepted)
}

// LossError reports that a service rejects a generation (published version) because its sets lost too many users.
type LossError struct {
	Before string // name of the earlier generation in the comparison
	Losses []Loss // losses above the number of allowed and approved departures
	// ZoneUsers is the number of users who had a time zone, and ZoneLeft is the number of users who lost it. ZoneUsers
	// and ZoneLeft are 0 if the total loss of time zones is not a reason for the rejection.
	ZoneUsers, ZoneLeft uint64
}

func (e *LossError) Error() string {
	texts := make([]string, 0, len(e.Losses)+1)
	for i := range e.Losses {
		texts = append(texts, e.Losses[i].String())
	}
	if e.ZoneLeft > 0 {
		texts = append(texts, fmt.Sprintf("%d of %d users with a time zone lose it, but at most %v %% may lose it",
			e.ZoneLeft, e.ZoneUsers, zonesMayLose))
	}
	if e.onlyOverrules() {
		return strings.Join(texts, "; ") + ". If this is a mistake, publish a build of an export that contains " +
			"the users, or build again with --as-of and the time when the export began, and with --force and " +
			"--reason if the users are the same. If it is intended, set may_lose of the set to 100 until the build " +
			"is in use"
	}
	return fmt.Sprintf("%s. If this is a mistake, publish a correct build. If it is intended, roll back to %s, "+
		"then build with --accept and --force",
		strings.Join(texts, "; "), e.Before)
}

// onlyOverrules reports whether a generation (published version) is rejected only because it would remove users whom
// API calls added.
func (e *LossError) onlyOverrules() bool {
	return e.ZoneLeft == 0 && !slices.ContainsFunc(e.Losses, func(l Loss) bool { return l.loses() })
}

// A comparison compares a generation (published version) with an earlier one to find sets that lost too many users.
type comparison struct {
	guarded Guarded
	was     *former
	next    *Generation
	// The function "object" reads a bitmap by its SHA-256, from a generation between the two compared generations.
	object func(ctx context.Context, sha256 string) (*bitmap.Bitmap, error)
	cores  int
	// The field "overruled" is the function RefresherConfig.Overruled. It is nil if no API calls change sets.
	overruled func(set string, before, next time.Time) []capping.UserID

	numbers *Renumbering // converts user numbers of was to user numbers of next; nil: not made yet
	// If "renumbered" is true, the function was.read returns bitmaps with the user numbers of the generation "next".
	renumbered bool

	losses   []Loss
	unjudged []string // sets that could not be compared, with reasons
	// The field "uncertain" is true if, during this comparison, a read of a bitmap from a generation between the two
	// compared generations failed.
	uncertain bool
}

// The method "against" returns the name of the earlier generation (published version) in the comparison, or "".
func (c *comparison) against() string {
	if c.was == nil {
		return ""
	}
	return c.was.manifest.Generation
}

// The method "run" compares the two generations (published versions). If sets lost too many users, the error of run is
// a *LossError; otherwise it is the error of ctx.
func (c *comparison) run(ctx context.Context) error {
	refused := &LossError{Before: c.was.manifest.Generation}
	for _, name := range slices.Sorted(maps.Keys(c.guarded.MayLose)) {
		loss, ok := c.lossOf(ctx, name)
		overruled := c.countOverruled(name, &loss)
		if !ok && !overruled {
			continue
		}
		c.losses = append(c.losses, loss)
		if loss.exceeds() {
			refused.Losses = append(refused.Losses, loss)
		}
	}
	if c.guarded.Zones {
		c.zones(ctx, refused)
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case len(refused.Losses) > 0 || refused.ZoneLeft > 0:
		return refused
	}
	return nil
}

// countOverruled counts users whom API calls added to the set and whom the next generation (published version) would
// remove. If the count is 0, countOverruled returns false.
func (c *comparison) countOverruled(name string, loss *Loss) bool {
	is := c.next.Manifest.set(name)
	if is == nil || c.overruled == nil || c.guarded.MayLose[name] >= 100 {
		return false
	}
	loss.Set, loss.AsOf = name, is.AsOf
	loss.Overruled = c.next.lacking(name, c.overruled(name, c.was.manifest.AsOf(name), is.AsOf))
	return loss.Overruled > 0
}

// The method "lacking" returns the number of the given users who are not in the named set of this generation (published
// version).
func (g *Generation) lacking(set string, users []capping.UserID) (lacking uint64) {
	numbers, member := make([]uint32, len(users)), make([]uint8, len(users))
	g.Dictionary.users(users, numbers)
	g.bitmapOf(set).Mark(numbers, member, 1)
	for _, is := range member {
		lacking += uint64(1 - is)
	}
	return lacking
}

// lossOf counts the users who left the set from the earlier to the next generation (published version). If the earlier
// generation lacks the set, the result "ok" of lossOf is false.
func (c *comparison) lossOf(ctx context.Context, name string) (loss Loss, ok bool) {
	was, is := c.was.manifest.set(name), c.next.Manifest.set(name)
	if was == nil {
		return loss, false
	}
	if is == nil { // API calls can still add users, but the set loses the users of earlier builds
		return Loss{Set: name, Before: was.Cardinality, Left: was.Cardinality, Empty: true,
			Vanished: was.Cardinality > 0 && !c.next.Manifest.acceptsEnd(was, c.was.manifest),
			Accepted: was.Cardinality}, true
	}
	loss = Loss{Set: name, Before: was.Cardinality, Allowed: Allowed(was.Cardinality, c.guarded.MayLose[name]),
		Empty: is.Cardinality == 0}
	if c.was.manifest.Users(&was.Segment) == c.next.Manifest.Users(&is.Segment) {
		return loss, true
	}
	before, err := c.readBefore(ctx, &was.Segment)
	if err != nil { // the difference of the counts is a lower bound
		loss.Left = was.Cardinality - min(was.Cardinality, is.Cardinality)
		c.unjudged = append(c.unjudged, fmt.Sprintf("set %s: %v", name, err))
		loss.Accepted = c.accounted(was, is)
		return loss, true
	}
	after := c.next.bitmapOf(name)
	loss.Left = bitmap.Outside([]*bitmap.Bitmap{before}, []*bitmap.Bitmap{after}, c.cores)[0]
	if loss.exceeds() {
		loss.Accepted = c.accepted(ctx, was, before, after, is)
	}
	return loss, true
}

// readBefore reads a bitmap of the earlier generation (published version), and converts it to the user numbers of the
// next generation.
func (c *comparison) readBefore(ctx context.Context, s *Segment) (*bitmap.Bitmap, error) {
	b, err := c.was.read(ctx, s)
	if err != nil || c.renumbered || c.was.manifest.SameNumbers(c.next.Manifest) {
		return b, err
	}
	if c.numbers == nil {
		earlier, err := c.was.dictionary(ctx)
		if err != nil {
			return nil, err
		}
		if c.numbers, err = NewRenumbering(earlier, c.next.Dictionary); err != nil {
			return nil, err
		}
	}
	return c.numbers.Bitmap(b), nil
}

// The method "accounted" returns the number of users who have left the set since the earlier generation (published
// version) by approved changes in the manifest. The first counted change starts with the set's users in the earlier
// generation. Each later change starts with the users with whom the previous change ended. If ids are not dense (32-bit
// numbers), the chain of approved changes may have a gap although no user left. The reason is that every new id changes
// the user numbers, so Manifest.Users returns a different result for the same users. If the chain has a gap, the method
// "accounted" counts all approved changes since the earlier generation.
func (c *comparison) accounted(was, is *Set) uint64 {
	m, from := c.next.Manifest, c.was.manifest.Users(&was.Segment)
	removed, end := m.accounted(was.Name, from, time.Time{})
	if m.IDs != nil && end != m.Users(&is.Segment) {
		removed, _ = m.accounted(was.Name, from, c.was.manifest.CreatedAt)
	}
	return removed
}

// The method "accepted" counts the users who left a set by approved changes in the manifest. The method "accepted" also
// counts the users who left between two approved changes, if the set's limit allows their number. The approved changes
// must form a chain from the set's old bitmap to the new bitmap. The method "accepted" reads bitmaps of other
// generations (published versions) only if the result depends on these bitmaps.
func (c *comparison) accepted(ctx context.Context, was *Set, before, after *bitmap.Bitmap, is *Set) uint64 {
	m, at, users := c.next.Manifest, before.SHA256(), before
	if m.IDs != nil { // accepted cannot find a bitmap between the two by its users
		return c.accounted(was, is)
	}
	steps, removed := 0, uint64(0)
	for i := range m.Accepted {
		a := &m.Accepted[i]
		if a.Set != was.Name {
			continue
		}
		if a.FromSHA256 != at {
			left, ok := c.bridge(ctx, a, &at, &users)
			if !ok {
				continue
			}
			removed += left
		}
		steps, removed = steps+1, removed+a.Removed
		at, users = a.ToSHA256, nil
	}
	switch {
	case steps == 0:
		return 0
	case at == is.SHA256:
		return removed
	case users == nil:
		users = c.between(ctx, at)
	}
	switch {
	case c.uncertain:
		return 0
	case users == nil: // gc has deleted the bitmap, but the counts remain
		return c.accounted(was, is)
	}
	left, ok := c.within(was.Name, users, after)
	if !ok {
		return 0
	}
	return removed + left
}

// The method "bridge" counts users who left the set after the last approved change of the chain and before the approved
// change a. The result "ok" of the method "bridge" is false if more users left than the limit of the set allows, or if
// a bitmap is missing. The method "bridge" ignores approved changes that are older than the earlier generation
// (published version).
func (c *comparison) bridge(ctx context.Context, a *Accepted, at *string,
	users **bitmap.Bitmap) (left uint64, ok bool) {
	if !a.At.After(c.was.manifest.CreatedAt) {
		return 0, false
	}
	if *users == nil {
		*users = c.between(ctx, *at)
	}
	from := c.between(ctx, a.FromSHA256)
	if *users == nil || from == nil {
		return 0, false
	}
	if left, ok = c.within(a.Set, *users, from); ok {
		*at, *users = a.FromSHA256, from
	}
	return left, ok
}

// The method "between" reads a bitmap of a generation that was published between the two compared generations. The
// method "between" returns nil if the bitmap does not exist or if the read fails.
func (c *comparison) between(ctx context.Context, sha256 string) *bitmap.Bitmap {
	b, err := c.object(ctx, sha256)
	if err != nil {
		c.uncertain = c.uncertain || !errors.Is(err, objects.ErrNotFound)
		return nil
	}
	return b
}

// The method "within" counts the users who are in the bitmap "before" but not in the bitmap "after". The method
// "within" also reports whether the limit of the set allows this number of users.
func (c *comparison) within(set string, before, after *bitmap.Bitmap) (left uint64, ok bool) {
	left = bitmap.Outside([]*bitmap.Bitmap{before}, []*bitmap.Bitmap{after}, c.cores)[0]
	return left, left <= Allowed(before.Cardinality(), c.guarded.MayLose[set])
}

// The method "accounted" returns the number of users who left a set by a chain of approved changes. In a chain, each
// approved change starts with the users with whom the previous change ended. The argument "users" identifies the users
// at the start of the chain, and the result "end" identifies the users at its end; see Manifest.Users. If the argument
// "since" is not zero, "accounted" also counts approved changes outside the chain that are later than this time.
func (m *Manifest) accounted(set, users string, since time.Time) (removed uint64, end string) {
	end = users
	for i := range m.Accepted {
		a := &m.Accepted[i]
		if a.Set == set && (a.FromSHA256 == end || !since.IsZero() && a.At.After(since)) {
			removed, end = removed+a.Removed, a.ToSHA256
		}
	}
	return removed, end
}

// JudgeZones returns an error if too many users lose their time zone from one generation (published version) to the
// next. A service that needs time zones rejects a generation for which JudgeZones returns an error. The bitmaps of both
// generations must contain the user numbers of one dictionary; see Generation.RenumberedBy.
func JudgeZones(before, next *Generation) *LossError {
	read := func(_ context.Context, s *Segment) (*bitmap.Bitmap, error) { return before.bitmapWith(s.SHA256), nil }
	c := comparison{was: &former{manifest: before.Manifest, read: read}, next: next, cores: runtime.GOMAXPROCS(0)}
	c.renumbered = true // the caller has converted the bitmaps
	refused := &LossError{Before: before.Manifest.Generation}
	if c.zones(context.Background(), refused); len(refused.Losses) == 0 && refused.ZoneLeft == 0 {
		return nil
	}
	return refused
}

// The method "zones" compares the time zone sets of the two generations (published versions), and adds the lost users
// to the error in the argument "refused".
func (c *comparison) zones(ctx context.Context, refused *LossError) {
	was, is := c.was.manifest.zones(), c.next.Manifest.zones()
	same := func(a, b *Set) bool {
		return a.Name == b.Name && c.was.manifest.Users(&a.Segment) == c.next.Manifest.Users(&b.Segment)
	}
	if len(was) == 0 || slices.EqualFunc(was, is, same) {
		return
	}
	left := c.zoneless(ctx, was, is)
	var users, gone, accepted uint64
	for i, zone := range was {
		loss := Loss{Set: zone.Name, Before: zone.Cardinality, Left: left[i],
			Allowed: Allowed(zone.Cardinality, zoneMayLose)}
		loss.Accepted, _ = c.next.Manifest.accounted(zone.Name, c.was.manifest.Users(&zone.Segment),
			c.was.manifest.CreatedAt)
		next := c.next.Manifest.set(zone.Name)
		loss.Vanished = next == nil && zone.Cardinality > 0 &&
			!c.next.Manifest.acceptsEnd(zone, c.was.manifest)
		loss.Empty = next == nil || next.Cardinality == 0
		users, gone, accepted = users+loss.Before, gone+loss.Left, accepted+min(loss.Left, loss.Accepted)
		if loss.exceeds() {
			refused.Losses = append(refused.Losses, loss)
		}
	}
	if gone-accepted > Allowed(users, zonesMayLose) {
		refused.ZoneUsers, refused.ZoneLeft = users, gone
	}
}

// The method "zoneless" counts, for each time zone of the earlier generation (published version), those users who have
// no time zone in the next generation.
func (c *comparison) zoneless(ctx context.Context, was, is []*Set) []uint64 {
	before, after := make([]*bitmap.Bitmap, len(was)), make([]*bitmap.Bitmap, len(is))
	for i, zone := range is {
		after[i] = c.next.bitmapOf(zone.Name)
	}
	for i, zone := range was {
		var err error
		if before[i], err = c.readBefore(ctx, &zone.Segment); err != nil {
			c.unjudged = append(c.unjudged, fmt.Sprintf("users of time zones: %v", err))
			return make([]uint64, len(was))
		}
	}
	return bitmap.Outside(before, after, c.cores)
}

// acceptsEnd reports whether an approved change in the manifest covers the removal of a set that an earlier generation
// (published version) had. The approved removal must start with the set's users in the earlier generation, or be later
// than the creation of the earlier generation.
func (m *Manifest) acceptsEnd(set *Set, was *Manifest) bool {
	return slices.ContainsFunc(m.Accepted, func(a Accepted) bool {
		return a.Set == set.Name && a.ToSHA256 == "" &&
			(a.FromSHA256 == was.Users(&set.Segment) || a.At.After(was.CreatedAt))
	})
}

// The method "set" returns the manifest's entry of the set with the given name, or nil.
func (m *Manifest) set(name string) *Set {
	for i := range m.Sets {
		if m.Sets[i].Name == name {
			return &m.Sets[i]
		}
	}
	return nil
}

// bitmapOf returns the generation's bitmap of the set with the given name, or nil.
func (g *Generation) bitmapOf(name string) *bitmap.Bitmap {
	for i := range g.Manifest.Sets {
		if g.Manifest.Sets[i].Name == name {
			return g.Sets[i]
		}
	}
	return nil
}
