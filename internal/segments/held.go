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

// holding remembers the live generation of the source, and why it is kept out of use: it
// may have hundreds of megabytes, and is compared again only when either side changes.
type holding struct {
	live    *Manifest // as it was last read
	checked Checked   // likewise

	refused string // generation; "": none
	inUse   string
	guarded Guarded
	err     error
	former  *stayed // generation for which a start refuses it, until one is in use
}

// sees notes the manifest of the source's live generation.
func (h *holding) sees(m *Manifest) { h.live = m }

// again returns why a generation is refused, when it was compared already.
func (h *holding) again(m *Manifest, inUse string, guarded Guarded) error {
	if h.err != nil && h.refused == m.Generation && h.inUse == inUse && h.guarded.equal(&guarded) {
		return h.err
	}
	return nil
}

// inUse names the generation in use, "" for none.
func (r *Refresher) inUse() string {
	if now := r.Current(); now != nil {
		return now.Generation()
	}
	return ""
}

// compare holds a generation to the one in use, at a start to a former one. The error is a
// *RefusedError, or that of ctx.
func (r *Refresher) compare(ctx context.Context, known *memory, next *Generation) (*comparison, error) {
	c := &comparison{guarded: r.cfg.Guarded(), next: next, cores: known.cores, object: r.object}
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
			r.held.err = nil // a bitmap that may be readable later could let it pass
		}
	}
	return c, err
}

// compareAtStart compares with the first former generation that can be read. A refusal
// stands only with one that can be read whole, since that one goes into use: otherwise the
// next decides. When there is none, the first refusal stands.
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
			first, refused = &c, fmt.Errorf("%w; the previous generation cannot be used: %w", err, loadErr)
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

// unmeasured says why there was no former generation to compare with. That the cache and
// the source have none is usual after a first publish.
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

// stay takes the former generation into use for which a start refused the live one.
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
	r.held.inUse = r.inUse() // the live one was compared with it
	r.cfg.Logger.Warn("segments: the live generation is rejected, the previous one stays in use",
		"source", r.cfg.Source.Name(),
		"generation", f.Manifest.Generation, "created_at", f.Manifest.CreatedAt, "origin", f.origin)
	return true
}

// Judge compares a generation of the source with a former one, as a start with this cache
// directory would. The error is a *RefusedError, or says what could not be read; against
// names the former one, and unjudged says what was not compared, and why.
func Judge(ctx context.Context, src objects.Source, cacheDir string, m *Manifest, guarded Guarded) (against string,
	unjudged []string, err error) {
	r := NewRefresher(RefresherConfig{Source: src, CacheDir: cacheDir, Guarded: func() Guarded { return guarded }})
	g, err := readGuarded(ctx, m, &guarded, func(ctx context.Context, s *Segment) (*bitmap.Bitmap, error) {
		return readBitmap(ctx, src, s)
	})
	if err != nil {
		return "", nil, err
	}
	c, err := r.compare(ctx, newMemory(nil), g)
	return c.against(), c.unjudged, err
}

// readGuarded reads the guarded sets of a generation, and nothing else of it.
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

// object reads a bitmap of the source by its SHA-256.
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

// Refusal is the live generation of the source, which is kept out of use.
type Refusal struct {
	Generation string
	Since      time.Time
	Err        *RefusedError
}

// The reasons of a refusal, the label of capper_segments_refused.
const (
	ReasonMissing = "missing" // it lacks a set that is needed
	ReasonUsers   = "users"   // users left a guarded set
	ReasonZones   = "zones"   // time zones, or users' time zones, are gone
)

// Reasons lists why the generation is refused.
func (f *Refusal) Reasons() (list []string) {
	var lost *LossError
	if !errors.As(f.Err, &lost) {
		return []string{ReasonMissing}
	}
	users, zones := false, lost.ZoneLeft > 0
	for i := range lost.Losses {
		users, zones = users || !lost.Losses[i].Zone(), zones || lost.Losses[i].Zone()
	}
	if users {
		list = append(list, ReasonUsers)
	}
	if zones {
		list = append(list, ReasonZones)
	}
	return list
}

// noteRefusal takes down whether the source's live generation is kept out of use; r.mu is held.
func (r *Refresher) noteRefusal(err error, now time.Time) {
	var refused *RefusedError
	switch {
	case err == nil:
		r.status.Refusal = nil
	case !errors.As(err, &refused): // the source says nothing new
	case r.status.Refusal == nil || r.status.Refusal.Generation != refused.Generation:
		r.status.Refusal = &Refusal{refused.Generation, now, refused}
	default:
		r.status.Refusal = &Refusal{refused.Generation, r.status.Refusal.Since, refused}
	}
}

// Left counts users who left a guarded set.
type Left struct {
	Last  uint64 // with the generation in use
	Total uint64 // since the start, with each generation that came into use
}

// Guard is how a guarded set of the generation in use stands.
type Guard struct {
	Set       string
	Users     uint64
	OnlyGrows bool // the publisher lets no user leave it, or hardly any
	MayLose   float64
	Left      Left
	AsOf      time.Time // see AsOf
}

// Guards tells of the guarded sets of the generation in use, in the order of the
// generation, without those of time zones. Safe at any time from any goroutine.
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
				r.AsOf(set.Name)})
		}
	}
	return list
}

// countLosses counts who left guarded sets with the generation that comes into use.
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
	}
	if len(c.unjudged) > 0 {
		r.cfg.Logger.Warn("segments: protected sets are in use without a comparison", "reason",
			strings.Join(c.unjudged, "; "))
	}
}

// confirmed is, by set of the generation in use, the time of the newest generation or
// build that has the set with the same users.
type confirmed map[string]confirmation

type confirmation struct {
	sha256 string
	at     time.Time
}

// AsOf is the time for which the users of a set of the generation in use are known: that
// of the newest build which read them from an input, of a refused generation too. A rollback
// confirms nothing, and a build that publishes no more than the users who joined sets confirms
// those sets alone. The zero time where the generation in use lacks the set. Safe at any
// time from any goroutine.
func (r *Refresher) AsOf(set string) time.Time {
	if of := r.asOf.Load(); of != nil {
		return (*of)[set].at
	}
	return time.Time{}
}

// confirm brings AsOf up to date. A time to come is now: the clock of a builder that is
// ahead must not keep a set young.
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
		case known.sha256 == set.SHA256:
			at = later(at, known.at)
		case known.sha256 != "" && joins: // a build read who joined from an input
			at = now.manifest.CreatedAt
		}
		if live[set.Name] == set.SHA256 {
			at = later(at, r.held.confirmedBy(r.held.live))
		}
		if at.After(clock) {
			at = clock
		}
		next[set.Name] = confirmation{set.SHA256, at}
	}
	r.asOf.Store(&next)
}

// sets are the SHA-256 of the live generation's sets by name, where another one is in use.
func (h *holding) sets(inUse *Manifest) map[string]string {
	if h.live == nil || h.live.Generation == inUse.Generation {
		return nil
	}
	sums := make(map[string]string, len(h.live.Sets))
	for i := range h.live.Sets {
		sums[h.live.Sets[i].Name] = h.live.Sets[i].SHA256
	}
	return sums
}

// confirmedBy is the time of the newest build that vouches for all of a generation. A
// generation from after the last complete build carries sets along that no build confirmed.
func (h *holding) confirmedBy(m *Manifest) time.Time {
	switch {
	case h.checked.Generation == m.Generation:
		return later(m.CreatedAt, h.checked.CheckedAt)
	case h.incomplete(m):
		return h.checked.CheckedAt
	}
	return m.CreatedAt
}

// incomplete reports whether a rollback made the generation, or a build that published no
// more than the users who joined sets: neither writes checked.json.
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

// readCachedChecked reads when a build last came to its end, as it was known before the start.
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

// saveChecked keeps when a build last came to its end. It is no fault when that fails.
func (c *cache) saveChecked(ctx context.Context, of Checked) {
	raw, err := json.Marshal(of)
	if c != nil && err == nil && !of.CheckedAt.IsZero() {
		_ = c.at.Overwrite(ctx, CheckedKey, append(raw, '\n'))
	}
}

// LostZones lists the sets of time zones that a generation in use here had, the one in use
// lacks, and nobody accepted to vanish, sorted. Safe at any time from any goroutine.
func (r *Refresher) LostZones() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.lost)
}

// noteZones takes down the sets of time zones that the next generation lacks.
func (r *Refresher) noteZones(before, next *Manifest) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, zone := range before.zones() {
		if zone.Cardinality > 0 && !next.acceptsEnd(zone, before.CreatedAt) {
			r.lost = append(r.lost, zone.Name)
		}
	}
	slices.Sort(r.lost)
	r.lost = slices.DeleteFunc(slices.Compact(r.lost), func(name string) bool { return next.set(name) != nil })
}
