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
	"capper/internal/objects"
)

// DefaultMayLose is how many users may leave a guarded set from the generation in use to
// the next, per 100 users, where nobody says otherwise.
const DefaultMayLose = 0.1

// Bounds of the users with a time zone who have none in the next generation, per 100 users.
const (
	zoneMayLose  = 50 // users of one zone: half of a zone with two users is one account
	zonesMayLose = 5  // users of all zones
)

// Guarded says which losses keep a generation out of use. The zero value guards nothing.
type Guarded struct {
	// MayLose is, by set, how many of its users may leave it from the generation in use to
	// the next, per 100 users. 100: all may, and nothing is compared.
	MayLose map[string]float64
	// Zones guards the sets of time zones: each must stay, and their users in one of them.
	Zones bool
}

func (g *Guarded) isEmpty() bool { return len(g.MayLose) == 0 && !g.Zones }

func (g *Guarded) equal(other *Guarded) bool {
	return g.Zones == other.Zones && maps.Equal(g.MayLose, other.MayLose)
}

// Allowed is how many of so many users may leave at a bound per 100 users.
func Allowed(users uint64, percent float64) uint64 {
	const rounding = 1e-6 // of a user: 0.1 % of 1,000 is 1, in binary fractions too
	return min(users, uint64(float64(users)*percent/100+rounding))
}

// Loss is the users who left one guarded set from one generation to the next.
type Loss struct {
	Set    string
	Before uint64
	// Left counts users who left the set. Users who left the set of a time zone count
	// only where they are in no other one.
	Left    uint64
	Allowed uint64 // how many may leave
	// Accepted counts users whose leaving the manifest's acceptances account for.
	Accepted uint64
	// Vanished is set of a time zone that the next generation lacks, and nobody accepted that.
	Vanished bool
	// Empty is set where nobody is left.
	Empty bool
}

// Zone reports whether the set is that of a time zone.
func (l *Loss) Zone() bool { return strings.HasPrefix(l.Set, ZonePrefix) }

func (l *Loss) exceeds() bool { return l.Vanished || l.Left > l.Allowed+l.Accepted }

func (l *Loss) String() string {
	switch {
	case l.Vanished:
		return fmt.Sprintf("set %s with its %d users is missing, and time zones of users are used", l.Set, l.Before)
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

// LossError refuses a generation because of users whom it lost.
type LossError struct {
	Before string // the generation that it was compared with
	Losses []Loss // those beyond what is allowed and accepted
	// ZoneUsers had a time zone, ZoneLeft of them have none; 0: the sum is no reason.
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
	return fmt.Sprintf("%s. If this is a mistake, publish a correct build. If it is intended, roll back to %s, "+
		"then build with --accept and --force",
		strings.Join(texts, "; "), e.Before)
}

// comparison holds a generation to the one before it.
type comparison struct {
	guarded Guarded
	was     *former
	next    *Generation
	// object reads a bitmap by its SHA-256, for the steps between the two generations.
	object func(ctx context.Context, sha256 string) (*bitmap.Bitmap, error)
	cores  int

	losses   []Loss
	unjudged []string // what could not be compared, and why
	// uncertain is set where a bitmap between the two could not be read just now.
	uncertain bool
}

// against names the generation before; empty where there is none to compare with.
func (c *comparison) against() string {
	if c.was == nil {
		return ""
	}
	return c.was.manifest.Generation
}

// run compares the two. The error is a *LossError, or that of ctx.
func (c *comparison) run(ctx context.Context) error {
	refused := &LossError{Before: c.was.manifest.Generation}
	for _, name := range slices.Sorted(maps.Keys(c.guarded.MayLose)) {
		loss, ok := c.lossOf(ctx, name)
		if !ok {
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

// lossOf counts who left a set; ok is false where one of the two generations lacks it.
func (c *comparison) lossOf(ctx context.Context, name string) (loss Loss, ok bool) {
	was, is := c.was.manifest.set(name), c.next.Manifest.set(name)
	if was == nil || is == nil {
		return loss, false
	}
	loss = Loss{Set: name, Before: was.Cardinality, Allowed: Allowed(was.Cardinality, c.guarded.MayLose[name]),
		Empty: is.Cardinality == 0}
	if was.SHA256 == is.SHA256 {
		return loss, true
	}
	before, err := c.was.read(ctx, &was.Segment)
	if err != nil { // at least as many left as the counts differ by
		loss.Left = was.Cardinality - min(was.Cardinality, is.Cardinality)
		c.unjudged = append(c.unjudged, fmt.Sprintf("set %s: %v", name, err))
		loss.Accepted = c.next.Manifest.accounted(name, was.SHA256, time.Time{})
		return loss, true
	}
	after := c.next.bitmapOf(name)
	loss.Left = bitmap.Outside([]*bitmap.Bitmap{before}, []*bitmap.Bitmap{after}, c.cores)[0]
	if loss.exceeds() {
		loss.Accepted = c.accepted(ctx, loss, before, after, is)
	}
	return loss, true
}

// accepted is how many users left a set by acceptances, where accepted steps lead from the
// bitmap before to the one after, with nothing between them but steps within the bound.
// The bitmaps between are read where that must be known.
func (c *comparison) accepted(ctx context.Context, loss Loss, before, after *bitmap.Bitmap, is *Set) uint64 {
	m, at, users := c.next.Manifest, before.SHA256(), before
	steps, removed := 0, uint64(0)
	for i := range m.Accepted {
		a := &m.Accepted[i]
		if a.Set != loss.Set {
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
	case users == nil: // gc removed it: the counts remain
		return m.accounted(loss.Set, before.SHA256(), time.Time{})
	}
	left, ok := c.within(loss.Set, users, after)
	if !ok {
		return 0
	}
	return removed + left
}

// bridge takes the step to the bitmap from which an acceptance starts, and counts who left
// by it; ok is false where it is not within the bound. Acceptances from before the earlier
// generation do not count.
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

// between reads a bitmap of a generation between the two; nil: it is not there.
func (c *comparison) between(ctx context.Context, sha256 string) *bitmap.Bitmap {
	b, err := c.object(ctx, sha256)
	if err != nil {
		c.uncertain = c.uncertain || !errors.Is(err, objects.ErrNotFound)
		return nil
	}
	return b
}

// within counts who left a set, and reports whether its bound allows that.
func (c *comparison) within(set string, before, after *bitmap.Bitmap) (left uint64, ok bool) {
	left = bitmap.Outside([]*bitmap.Bitmap{before}, []*bitmap.Bitmap{after}, c.cores)[0]
	return left, left <= Allowed(before.Cardinality(), c.guarded.MayLose[set])
}

// accounted is how many users left a set by the chain of acceptances that begins at a
// bitmap. Those from a time on count in whatever order; the zero time: none do.
func (m *Manifest) accounted(set, sha256 string, since time.Time) (removed uint64) {
	at := sha256
	for i := range m.Accepted {
		a := &m.Accepted[i]
		if a.Set == set && (a.FromSHA256 == at || !since.IsZero() && a.At.After(since)) {
			removed, at = removed+a.Removed, a.ToSHA256
		}
	}
	return removed
}

// JudgeZones says why services that need the time zones of users refuse the next generation.
func JudgeZones(before, next *Generation) *LossError {
	read := func(_ context.Context, s *Segment) (*bitmap.Bitmap, error) { return before.bitmapWith(s.SHA256), nil }
	c := comparison{was: &former{manifest: before.Manifest, read: read}, next: next, cores: runtime.GOMAXPROCS(0)}
	refused := &LossError{Before: before.Manifest.Generation}
	if c.zones(context.Background(), refused); len(refused.Losses) == 0 && refused.ZoneLeft == 0 {
		return nil
	}
	return refused
}

// zones compares the sets of time zones.
func (c *comparison) zones(ctx context.Context, refused *LossError) {
	was, is := c.was.manifest.zones(), c.next.Manifest.zones()
	same := func(a, b *Set) bool { return a.Name == b.Name && a.SHA256 == b.SHA256 }
	if len(was) == 0 || slices.EqualFunc(was, is, same) {
		return
	}
	left := c.zoneless(ctx, was, is)
	var users, gone, accepted uint64
	for i, zone := range was {
		loss := Loss{Set: zone.Name, Before: zone.Cardinality, Left: left[i],
			Allowed: Allowed(zone.Cardinality, zoneMayLose)}
		loss.Accepted = c.next.Manifest.accounted(zone.Name, zone.SHA256, c.was.manifest.CreatedAt)
		next := c.next.Manifest.set(zone.Name)
		loss.Vanished = next == nil && zone.Cardinality > 0 &&
			!c.next.Manifest.acceptsEnd(zone, c.was.manifest.CreatedAt)
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

// zoneless counts, by zone of before, its users who are in no zone of the next generation.
func (c *comparison) zoneless(ctx context.Context, was, is []*Set) []uint64 {
	before, after := make([]*bitmap.Bitmap, len(was)), make([]*bitmap.Bitmap, len(is))
	for i, zone := range is {
		after[i] = c.next.bitmapOf(zone.Name)
	}
	for i, zone := range was {
		var err error
		if before[i], err = c.was.read(ctx, &zone.Segment); err != nil {
			c.unjudged = append(c.unjudged, fmt.Sprintf("users of time zones: %v", err))
			return make([]uint64, len(was))
		}
	}
	return bitmap.Outside(before, after, c.cores)
}

// acceptsEnd reports whether the set's end was accepted: from its present bitmap, or at
// any time after the generation with it was made.
func (m *Manifest) acceptsEnd(set *Set, since time.Time) bool {
	return slices.ContainsFunc(m.Accepted, func(a Accepted) bool {
		return a.Set == set.Name && a.ToSHA256 == "" && (a.FromSHA256 == set.SHA256 || a.At.After(since))
	})
}

// set is a set of the manifest by its name, nil where there is none.
func (m *Manifest) set(name string) *Set {
	for i := range m.Sets {
		if m.Sets[i].Name == name {
			return &m.Sets[i]
		}
	}
	return nil
}

// bitmapOf is the bitmap of a set by its name, nil where there is none.
func (g *Generation) bitmapOf(name string) *bitmap.Bitmap {
	for i := range g.Manifest.Sets {
		if g.Manifest.Sets[i].Name == name {
			return g.Sets[i]
		}
	}
	return nil
}
