package segments

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"capper/internal/bitmap"
	"capper/internal/objects"
)

// The struct "holding" stores the manifest of the source's live generation (published version that current.json names),
// and the reason if the service rejects this generation. A comparison of two generations may read hundreds of
// megabytes. The Refresher therefore repeats a comparison only if one of the two generations or the limits change.
type holding struct {
	live    *Manifest // manifest of the live generation at the last read
	checked Checked   // checked.json at the last read

	refused string // generation; "": none
	inUse   string
	guarded Guarded
	err     error
	former  *stayed // earlier generation that a starting service uses if it rejects the live one
}

// The method "sees" stores the manifest of the source's live generation (published version that current.json names) at
// the last read.
func (h *holding) sees(m *Manifest) { h.live = m }

// The method "again" returns the error of the last comparison, if that comparison had the given two generations
// (published versions) and the given limits. If the generations or the limits differ, the method "again" returns nil.
func (h *holding) again(m *Manifest, inUse string, guarded Guarded) error {
	if h.err != nil && h.refused == m.Generation && h.inUse == inUse && h.guarded.equal(&guarded) {
		return h.err
	}
	return nil
}

// inUse returns the name of the generation (published version) in use, or "" if none is loaded.
func (r *Refresher) inUse() string {
	if now := r.Current(); now != nil {
		return now.Generation()
	}
	return ""
}

// The method "compare" compares the next generation (published version) with the generation in use. When the service
// starts, no generation is in use, so the method "compare" chooses an earlier generation. The error is a *RefusedError
// if sets lost too many users, or the error of ctx.
func (r *Refresher) compare(ctx context.Context, known *memory, next *Generation) (*comparison, error) {
	c := &comparison{guarded: r.cfg.Guarded(), next: next, cores: known.cores, object: r.object,
		overruled: r.cfg.Overruled}
	if c.guarded.isEmpty() {
		return c, nil
	}
	var err error
	if now := r.Current(); now != nil {
		c.was = inUseBefore(now)
		err = c.run(ctx)
	} else {
		c, err = r.compareAtStart(ctx, c)
	}
	if lost := (*LossError)(nil); errors.As(err, &lost) {
		err = &RefusedError{next.Manifest.Generation, err}
		r.held.refused, r.held.inUse, r.held.guarded, r.held.err = next.Manifest.Generation, r.inUse(), c.guarded, err
		if c.uncertain {
			r.held.err = nil // the result could change once the bitmap is readable
		}
	}
	return c, err
}

// When a service starts, compareAtStart compares the live generation (published version that current.json names) with
// the first readable earlier generation. If the service rejects the live generation, it must use the earlier generation
// instead. If the earlier generation is not completely readable, compareAtStart therefore compares with the next
// earlier generation. If no earlier generation is completely readable, compareAtStart returns the result of the first
// comparison.
func (r *Refresher) compareAtStart(ctx context.Context, blank *comparison) (*comparison, error) {
	var first *comparison
	var refused error
	var none []error
	for was, err := range r.formers(ctx, blank) {
		if err != nil {
			none = append(none, err)
			continue
		}
		if refused != nil && !was.measures(&blank.guarded, blank.next.Manifest) {
			break
		}
		c := *blank
		c.was = was
		err = c.run(ctx)
		if lost := (*LossError)(nil); !errors.As(err, &lost) {
			return &c, err
		}
		whole, loadErr := was.load(ctx)
		if loadErr == nil {
			r.held.former = whole
			return &c, err
		}
		r.cfg.Logger.Warn("segments: an earlier generation cannot be used", "error", loadErr)
		if refused == nil {
			first, refused = &c, fmt.Errorf(
				"%w; the previous generation (published version) cannot be used: %w", err, loadErr)
		}
	}
	switch {
	case ctx.Err() != nil:
		return blank, context.Cause(ctx)
	case refused != nil:
		return first, refused
	}
	blank.unjudged = unmeasured(none)
	return blank, nil
}

// The function "unmeasured" returns the reasons for which a starting service found no earlier generation (published
// version) for a comparison. After a first publish, an empty cache and a source without earlier generations are normal.
func unmeasured(none []error) (texts []string) {
	usual := true
	for _, err := range none {
		usual = usual && (errors.Is(err, errNoCache) || errors.Is(err, errEmptyCache) || errors.Is(err, errNoEarlier))
		texts = append(texts, err.Error())
	}
	if usual && len(texts) > 0 {
		return []string{"no earlier generation was found, which is normal after a first publish: " +
			strings.Join(texts, ", and ")}
	}
	return texts
}

// The method "stay" makes a starting service that has rejected the live generation (published version that current.json
// names) use the earlier generation.
func (r *Refresher) stay(ctx context.Context, require func(*Manifest) error) bool {
	f := r.held.former
	if f == nil || f.Manifest.fulfils(require) != nil {
		return false
	}
	if f.origin == OriginCache {
		r.readCachedChecked(ctx)
	} else {
		r.keepCopy(ctx, f.Generation)
	}
	r.swap(f.Snapshot(), f.origin, &comparison{})
	r.held.inUse = r.inUse() // the live generation was compared with this one
	r.cfg.Logger.Warn("segments: the live generation is rejected, the previous one stays in use",
		"source", r.cfg.Source.Name(),
		"generation", f.Manifest.Generation, "created_at", f.Manifest.CreatedAt, "origin", f.origin)
	return true
}

// Judge reports whether a service that starts with the given cache directory would reject the generation (published
// version) with the manifest m. If the service would reject the generation, the error is a *RefusedError; other errors
// report a failed read. The result "against" of Judge is the name of the earlier generation in the comparison. The
// result "unjudged" of Judge lists failed comparisons with their reasons.
func Judge(ctx context.Context, src objects.Source, cacheDir string, m *Manifest, guarded Guarded) (against string,
	unjudged []string, err error) {
	r := NewRefresher(RefresherConfig{Source: src, CacheDir: cacheDir, Guarded: func() Guarded { return guarded }})
	g, err := readGuarded(ctx, m, &guarded, func(ctx context.Context, s *Segment) (*bitmap.Bitmap, error) {
		return readBitmap(ctx, src, s)
	})
	if err == nil {
		err = g.readNumbers(ctx, src, nil)
	}
	if err != nil {
		return "", nil, err
	}
	c, err := r.compare(ctx, newMemory(nil), g)
	return c.against(), c.unjudged, err
}

// readGuarded reads the bitmaps of a generation's guarded sets (sets with a limit on lost users), and no other bitmaps.
func readGuarded(ctx context.Context, m *Manifest, guarded *Guarded, read readFunc) (*Generation, error) {
	g := &Generation{Manifest: m, Sets: make([]*bitmap.Bitmap, len(m.Sets))}
	for i := range m.Sets {
		set := &m.Sets[i]
		_, listed := guarded.MayLose[set.Name]
		if !listed && !(guarded.Zones && strings.HasPrefix(set.Name, ZonePrefix)) {
			continue
		}
		var err error
		if g.Sets[i], err = read(ctx, &set.Segment); err != nil {
			return nil, fmt.Errorf("set %q: %w", set.Name, err)
		}
	}
	return g, nil
}

// The method "object" reads the bitmap with the given SHA-256 from the source.
func (r *Refresher) object(ctx context.Context, sha256 string) (*bitmap.Bitmap, error) {
	raw, err := r.cfg.Source.Read(ctx, BitmapKey(sha256), bitmap.MaxBytes)
	if err != nil {
		return nil, err
	}
	if got := Sum(raw); got != sha256 {
		return nil, fmt.Errorf("checksum mismatch: sha256 is %s, but the file name says %s", got, sha256)
	}
	return bitmap.Read(raw)
}

// Refusal contains the reason and the start of a rejection: the service does not use the source's live generation
// (published version that current.json names).
type Refusal struct {
	Generation string
	Since      time.Time
	Err        *RefusedError
}

// The constants ReasonMissing to ReasonIDs are reasons for rejecting a generation (published version), and label values
// of the metric capper_segments_refused.
const (
	ReasonMissing = "missing" // a required set is missing
	ReasonUsers   = "users"   // too many users left a guarded set
	ReasonZones   = "zones"   // time zones, or users' time zones, are gone
	ReasonCalls   = "calls"   // the generation lacks too many users whom API calls added
	ReasonAsOf    = "as_of"   // the generation lacks changes by API calls that the store has already removed
	ReasonIDs     = "ids"     // the ids have another kind or key
)

// Reasons lists all reasons for rejecting a generation (published version).
func Reasons() []string {
	return []string{ReasonMissing, ReasonUsers, ReasonZones, ReasonCalls, ReasonAsOf, ReasonIDs}
}

// AsOfError is the error that RefresherConfig.Require returns for a generation (published version) whose sets lack
// changes that API calls made.
type AsOfError struct{ Err error }

// Error returns the text of the reason.
func (e *AsOfError) Error() string { return e.Err.Error() }

// Reasons returns the reasons, such as ReasonUsers, for which the service rejects the live generation (published
// version that current.json names).
func (f *Refusal) Reasons() (list []string) {
	var lost *LossError
	asOf, otherIDs := (*AsOfError)(nil), (*IDsError)(nil)
	switch {
	case errors.As(f.Err, &otherIDs):
		return []string{ReasonIDs}
	case errors.As(f.Err, &asOf):
		return []string{ReasonAsOf}
	case !errors.As(f.Err, &lost):
		return []string{ReasonMissing}
	}
	found := map[string]bool{ReasonZones: lost.ZoneLeft > 0}
	for i := range lost.Losses {
		switch loss := &lost.Losses[i]; {
		case loss.Zone():
			found[ReasonZones] = true
		case loss.loses():
			found[ReasonUsers] = true
		default:
			found[ReasonCalls] = true
		}
	}
	return slices.DeleteFunc(Reasons(), func(reason string) bool { return !found[reason] })
}

// noteRefusal records whether the service rejects the generation (published version) that is live at the source. The
// caller of noteRefusal holds r.mu.
func (r *Refresher) noteRefusal(err error, now time.Time) {
	var refused *RefusedError
	switch {
	case err == nil:
		r.status.Refusal = nil
	case !errors.As(err, &refused): // the check of the source returned nothing new
	case r.status.Refusal == nil || r.status.Refusal.Generation != refused.Generation:
		r.status.Refusal = &Refusal{refused.Generation, now, refused}
	default:
		r.status.Refusal = &Refusal{refused.Generation, r.status.Refusal.Since, refused}
	}
}

// The type Left counts the users who left a guarded set (set with a limit on lost users) when new generations
// (published versions) came into use.
type Left struct {
	Last  uint64 // users who left when the generation in use replaced the previous one
	Total uint64 // since the start of the service, over all generations in use
}

// A Guard describes one guarded set (set with a limit on lost users) of the generation (published version) in use.
type Guard struct {
	Set       string
	Users     uint64
	OnlyGrows bool // the publisher's guard lets no users, or only a few, leave the set
	MayLose   float64
	Left      Left
	Overruled uint64    // users whom API calls added before AsOf, but whom the set lacks
	AsOf      time.Time // the result of Refresher.AsOf
}

// The method Guards describes each guarded set (set with a limit on lost users) of the generation (published version)
// in use, except time zone sets. Guards lists the guarded sets in the order of the manifest. The method Guards is safe
// for concurrent use.
func (r *Refresher) Guards() (list []Guard) {
	now := r.Current()
	if now == nil {
		return nil
	}
	guarded := r.cfg.Guarded()
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range now.manifest.Sets {
		set := &now.manifest.Sets[i]
		if mayLose, ok := guarded.MayLose[set.Name]; ok {
			list = append(list, Guard{set.Name, set.Cardinality, set.OnlyGrows, mayLose, r.left[set.Name],
				r.late.known[set.Name], r.AsOf(set.Name)})
		}
	}
	return list
}

// countLosses adds the users who left guarded sets (sets with a limit on lost users) to the counts that Guards returns.
// The Refresher calls countLosses when a new generation (published version) comes into use.
func (r *Refresher) countLosses(c *comparison) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for set, left := range r.left {
		r.left[set] = Left{Total: left.Total}
	}
	for i := range c.losses {
		loss := &c.losses[i]
		r.left[loss.Set] = Left{loss.Left, r.left[loss.Set].Total + loss.Left}
		if loss.Left > 0 {
			r.cfg.Logger.Warn("segments: users left a protected set", "set", loss.Set, "users", loss.Left, "of",
				loss.Before, "allowed", loss.Allowed, "accepted", loss.Accepted)
		}
		if loss.Overruled > 0 {
			r.cfg.Logger.Warn("segments: a build removes users whom API calls had added to a set",
				"set", loss.Set,
				"users", loss.Overruled, "as_of", loss.AsOf.Format(time.RFC3339))
		}
	}
	if len(c.unjudged) > 0 {
		r.cfg.Logger.Warn("segments: protected sets are in use without a comparison with an earlier generation",
			"reason",
			strings.Join(c.unjudged, "; "))
	}
}

// The type "confirmed" contains a time for each set of the generation (published version) in use: the time of the
// newest generation or build with the same users in this set.
type confirmed map[string]confirmation

type confirmation struct {
	users string // the result of Manifest.Users
	at    time.Time
}

// AsOf returns the last time at which a set's users in the generation (published version) in use were known to be
// right. Each build that reads exactly the same users from its input moves this time forward, even if the service
// rejects the generation of the build. If the field "as_of" in the set's manifest entry has a later time, AsOf returns
// this later time. A rollback does not change the time that AsOf returns. If a build only adds users to some sets, only
// these sets get a later time. AsOf returns the zero time if the generation in use lacks the set. The method AsOf is
// safe for concurrent use.
func (r *Refresher) AsOf(set string) time.Time {
	if of := r.asOf.Load(); of != nil {
		return (*of)[set].at
	}
	return time.Time{}
}

// The method "confirm" updates the times that Refresher.AsOf returns. If a time is in the future, "confirm" uses the
// current time instead. If the clock of a build machine is ahead, a set therefore does not look newer than it is.
func (r *Refresher) confirm() {
	now := r.Current()
	if now == nil {
		return
	}
	was, clock, live := r.asOf.Load(), r.cfg.Clock(), r.held.sets(&now.manifest)
	next := make(confirmed, len(now.manifest.Sets))
	joins := r.held.incomplete(&now.manifest) && !strings.HasPrefix(now.manifest.Reason, RollbackReason)
	for i := range now.manifest.Sets {
		set := &now.manifest.Sets[i]
		at := r.held.confirmedBy(&now.manifest)
		known := confirmation{}
		if was != nil {
			known = (*was)[set.Name]
		}
		switch {
		case known.users == now.manifest.Users(&set.Segment):
			at = later(at, known.at)
		case known.users != "" && joins: // a build has read the users who joined from an input
			at = now.manifest.CreatedAt
		}
		if live[set.Name] == now.manifest.Users(&set.Segment) {
			at = later(at, r.held.confirmedBy(r.held.live))
		}
		if at = later(at, set.AsOf); at.After(clock) {
			at = clock
		}
		next[set.Name] = confirmation{now.manifest.Users(&set.Segment), at}
	}
	r.asOf.Store(&next)
}

// The method "sets" returns an identifier of the users (see Manifest.Users) for each set of the source's live
// generation (published version that current.json names). If the service uses the live generation of the source, the
// method "sets" returns nil.
func (h *holding) sets(inUse *Manifest) map[string]string {
	if h.live == nil || h.live.Generation == inUse.Generation {
		return nil
	}
	sums := make(map[string]string, len(h.live.Sets))
	for i := range h.live.Sets {
		sums[h.live.Sets[i].Name] = h.live.Users(&h.live.Sets[i].Segment)
	}
	return sums
}

// confirmedBy returns the time of the newest build whose input had the same users as the generation (published version)
// in all sets. If the generation is newer than the last complete build, confirmedBy returns the time of that build. The
// reason is that perhaps no build has read the sets of the newer generation from an input.
func (h *holding) confirmedBy(m *Manifest) time.Time {
	switch {
	case h.checked.Generation == m.Generation:
		return later(m.CreatedAt, h.checked.CheckedAt)
	case h.incomplete(m):
		return h.checked.CheckedAt
	}
	return m.CreatedAt
}

// The method "incomplete" reports whether the generation (published version) comes from a rollback, or from a build
// that only published users who joined sets. Rollbacks, and builds that only publish users who joined sets, do not
// write checked.json.
func (h *holding) incomplete(m *Manifest) bool {
	return !h.checked.CheckedAt.IsZero() && h.checked.Generation != m.Generation &&
		m.CreatedAt.After(h.checked.CheckedAt)
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// readCachedChecked reads the time of the last complete build from the local cache, where an earlier run of the service
// stored it.
func (r *Refresher) readCachedChecked(ctx context.Context) {
	c, err := ReadChecked(ctx, r.cache.at)
	if err != nil || c.CheckedAt.IsZero() {
		return
	}
	r.held.checked = c
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status.BuiltAt = later(r.status.BuiltAt, c.CheckedAt)
}

// saveChecked stores the time of the last complete build in the local cache, and ignores errors.
func (c *cache) saveChecked(ctx context.Context, of Checked) {
	raw, err := json.Marshal(of)
	if c != nil && err == nil && !of.CheckedAt.IsZero() {
		_ = c.at.Overwrite(ctx, CheckedKey, append(raw, '\n'))
	}
}

// LostZones returns the sorted names of time zone sets that a newer generation (published version) no longer has,
// although no operator approved their removal. The method LostZones is safe for concurrent use.
func (r *Refresher) LostZones() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.lost)
}

// noteZones records the time zone sets that the next generation (published version) lacks, for the method LostZones.
func (r *Refresher) noteZones(before, next *Manifest) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, zone := range before.zones() {
		if zone.Cardinality > 0 && !next.acceptsEnd(zone, before) {
			r.lost = append(r.lost, zone.Name)
		}
	}
	slices.Sort(r.lost)
	r.lost = slices.DeleteFunc(slices.Compact(r.lost), func(name string) bool { return next.set(name) != nil })
}
