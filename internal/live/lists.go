package live

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"capper/internal/capping"
)

// Lists holds the live changes (changes by API calls) of all sets in memory.
type Lists struct {
	images  bool          // users are 64-bit images, and bitmaps contain numbers of users
	changed atomic.Uint64 // increases with every change of the fields below

	mu       sync.RWMutex
	sets     map[string]*list
	versions []string // by partition of the store
	clients  []string // names of clients; index 0 is ""
	numbers  map[string]uint16
}

// New returns Lists without changes, for dense ids (32-bit integers). The argument of New is the number of partitions
// of the store; each partition has its own version.
func New(partitions int) *Lists {
	return &Lists{sets: map[string]*list{}, versions: make([]string, partitions), clients: []string{""},
		numbers: map[string]uint16{"": 0}}
}

// NewOfImages works like New, for deployments in which id images (64-bit hashes) stand for users because ids are not
// dense.
func NewOfImages(partitions int) *Lists {
	l := New(partitions)
	l.images = true
	return l
}

// The method Apply adds the live changes (changes by API calls) in records from the store to the lists in memory. If
// the list already contains a later change of the same user in the set, Apply ignores the change.
func (l *Lists) Apply(records ...*Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.apply(records)
}

// ApplyUpTo brings the live changes (changes of sets by API calls) of one partition in memory to the given version.
// ApplyUpTo first removes changes up to the times in the argument "freed", and then applies the records. The caller of
// ApplyUpTo must pass either all records of the partition, or all records after the version of the lists. If the lists
// already have the given version and the argument "records" is empty, ApplyUpTo does nothing.
func (l *Lists) ApplyUpTo(partition int, version string, freed map[string]capping.Instant, records []*Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(records) == 0 && l.versions[partition] == version {
		return
	}
	for set, upTo := range freed {
		l.list(set).drop(upTo)
	}
	l.apply(records)
	l.versions[partition] = version
}

// The method Drop removes the live changes (changes by API calls) of each set up to the time in the map "freed". The
// generations in use contain these changes.
func (l *Lists) Drop(freed map[string]capping.Instant) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for set, upTo := range freed {
		l.list(set).drop(upTo)
	}
	l.changed.Add(1)
}

func (l *Lists) apply(records []*Record) {
	for _, r := range records {
		to, by := l.list(r.Set), l.number(r.By)
		for i := range r.Runs {
			for kind, users := range r.Runs[i].Users {
				to.apply(users, infoOf(r.Runs[i].At, by, Kind(kind)))
			}
		}
	}
	l.changed.Add(1)
}

func (l *Lists) list(set string) *list {
	if l.sets[set] == nil {
		l.sets[set] = newList()
	}
	return l.sets[set]
}

// The method "number" returns the number that stands for a client name in the type "info". If 65,535 clients already
// have a number, further clients get the number 0, so their changes have no client name.
func (l *Lists) number(client string) uint16 {
	n, ok := l.numbers[client]
	if !ok && len(l.clients) < 1<<16 {
		n = uint16(len(l.clients))
		l.clients, l.numbers[client] = append(l.clients, client), n
	}
	return n
}

// Changed returns a number that increases with every live change (change by an API call) and with every new version of
// a partition of the store.
func (l *Lists) Changed() uint64 { return l.changed.Load() }

// The method Version returns the latest version of a store partition whose changes, and all earlier changes, are in the
// lists. The version "" means that this version is unknown.
func (l *Lists) Version(partition int) string {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.versions[partition]
}

// Stamp returns the time for the changes of a batch (an API call). If the batch has the time Batch.At, Stamp returns
// this time. If Batch.At is 0, Stamp returns the time now or a later time. The returned time is later than Batch.After,
// later than every removed change of the set, and later than each known change of the batch's users in the set.
func (l *Lists) Stamp(b *Batch, now capping.Instant) capping.Instant {
	if b.At != 0 {
		return b.At
	}
	now = max(now, b.After+1)
	l.mu.RLock()
	defer l.mu.RUnlock()
	if of := l.sets[b.Set]; of != nil {
		for _, users := range [][]capping.UserID{b.Add, b.Remove, b.Forget} {
			for _, user := range users {
				if known, ok := of.of(user); ok {
					now = max(now, known.at()+1)
				}
			}
		}
		now = max(now, of.freed+1)
	}
	return now
}

// If the known change of a user in the set has a time in the period "later", WithoutLater removes the user from the
// batch. WithoutLater returns the remaining batch and the number of removed users. A change with such a time was
// certainly made after the call of the batch, so the batch must not override the change. A batch with the time Batch.At
// stays as it is.
func (l *Lists) WithoutLater(b *Batch, later capping.Period) (rest Batch, without int) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	rest = *b
	of := l.sets[b.Set]
	if of == nil || b.At != 0 {
		return rest, 0
	}
	followed := func(user capping.UserID) bool { return of.changed(user, later) }
	for _, users := range []*[]capping.UserID{&rest.Add, &rest.Remove, &rest.Forget} {
		if n := len(*users); slices.ContainsFunc(*users, followed) {
			*users = slices.DeleteFunc(slices.Clone(*users), followed)
			without += n - len(*users)
		}
	}
	return rest, without
}

// The method Superseded returns the number of changes in the record that have no effect. A change has no effect if it
// is not the latest change of the user in the set.
func (l *Lists) Superseded(r *Record) (n int) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	of := l.sets[r.Set]
	for i := range r.Runs {
		for kind, users := range r.Runs[i].Users {
			for _, user := range users {
				if of == nil || !of.holds(user, r.Runs[i].At, Kind(kind)) {
					n++
				}
			}
		}
	}
	return n
}

// AddOvertaken adds changes of the record to the batch, so that the store tries them again: the changes without effect.
// AddOvertaken returns the number of these changes. If an instance with a fast clock stored another change of the same
// user before, a change has no effect. If the other change has a time in the period "later", AddOvertaken leaves out
// the change of the record, because it must have no effect.
func (l *Lists) AddOvertaken(b *Batch, r *Record, later capping.Period) (n int) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	of := l.sets[r.Set]
	for i := range r.Runs {
		for kind, to := range []*[]capping.UserID{Forgotten: &b.Forget, Removed: &b.Remove, Added: &b.Add} {
			for _, user := range r.Runs[i].Users[kind] {
				if of != nil && (of.holds(user, r.Runs[i].At, Kind(kind)) || of.changed(user, later)) {
					continue
				}
				*to = append(*to, user)
				n++
			}
		}
	}
	return n
}

// Holds reports whether every change in the record is the latest change of its user in the set, and so takes effect.
func (l *Lists) Holds(r *Record) bool { return l.Superseded(r) == 0 }

// The method "changed" reports whether the time of the user's latest change is in the period.
func (l *list) changed(user capping.UserID, period capping.Period) bool {
	known, ok := l.of(user)
	return ok && period.Has(known.at())
}

func (l *list) holds(user capping.UserID, at capping.Instant, kind Kind) bool {
	known, ok := l.of(user)
	return ok && known.at() == at && known.kind() == kind
}

// The method Of returns the latest change of a user in a set.
func (l *Lists) Of(set string, user capping.UserID) (Change, bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	of := l.sets[set]
	if of == nil {
		return Change{}, false
	}
	known, ok := of.of(user)
	return l.change(user, known), ok
}

func (l *Lists) change(user capping.UserID, known info) Change {
	return Change{User: user, Kind: known.kind(), At: known.at(), By: l.clients[known.by()]}
}

// OfUser returns the latest change of a user in each set, by set name.
func (l *Lists) OfUser(user capping.UserID) map[string]Change {
	l.mu.RLock()
	defer l.mu.RUnlock()
	changes := map[string]Change{}
	for set, of := range l.sets {
		if known, ok := of.of(user); ok {
			changes[set] = l.change(user, known)
		}
	}
	return changes
}

// The method Since returns the changes of a set at or after the given time, in ascending order of users. The argument
// "from" is the first user, and "limit" is the maximum number of returned changes.
func (l *Lists) Since(set string, at capping.Instant, from capping.UserID, limit int) (changes []Change) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	of := l.sets[set]
	if of == nil {
		return nil
	}
	for _, key := range of.keys() {
		b := of.blocks[key]
		for i := range b.lows {
			user := b.user(key, i)
			if user < from || b.infos[i].at() < at {
				continue
			}
			if len(changes) == limit {
				return changes
			}
			changes = append(changes, l.change(user, b.infos[i]))
		}
	}
	return changes
}

// The method Overruled returns the users whom an API call added to the set, and whom a newer build of the set may lack.
// The times "before" and "next" are the as-of times (times of export) of the older and of the newer build. The method
// Overruled returns a user if the addition overrides the older build but not the newer build.
func (l *Lists) Overruled(set string, before, next capping.Instant) (users []capping.UserID) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	of := l.sets[set]
	if of == nil {
		return nil
	}
	for _, key := range of.keys() {
		b := of.blocks[key]
		for i, one := range b.infos {
			decided, member := one.in(before)
			if decides, _ := one.in(next); decided && member && !decides {
				users = append(users, b.user(key, i))
			}
		}
	}
	return users
}

// Size contains the numbers of live changes (changes by API calls) in a set.
type Size struct {
	Set            string
	Additions      int             // number of users whose latest change is an addition
	Removals       int             // number of users whose latest change is a removal
	Superseded     int             // number of additions and removals that a build supersedes; the method Sizes sets 0
	Oldest, Newest capping.Instant // 0: no changes
	Freed          capping.Instant // changes up to this time were removed; 0: no removed changes
}

// For each set, Sizes returns the numbers of live changes (changes by API calls), in the order of set names. The method
// Sizes reads every live change.
func (l *Lists) Sizes() (sizes []Size) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	for _, name := range slices.Sorted(maps.Keys(l.sets)) {
		of := l.sets[name]
		size := Size{Set: name, Additions: of.counts[Added], Removals: of.counts[Removed], Freed: of.freed}
		for _, b := range of.blocks {
			for _, i := range b.infos {
				size.Newest = max(size.Newest, i.at())
				if size.Oldest == 0 || i.at() < size.Oldest {
					size.Oldest = i.at()
				}
			}
		}
		sizes = append(sizes, size)
	}
	return sizes
}

// Len returns the number of users whose latest live change (change by an API call) in the set is an addition or a
// removal. Len does not count users whose latest change is of the kind Forgotten, because this kind cancels the user's
// earlier changes.
func (l *Lists) Len(set string) int {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if of := l.sets[set]; of != nil {
		return of.counts[Added] + of.counts[Removed]
	}
	return 0
}

// The method Freed returns the time up to which the store has removed all live changes (changes by API calls) of the
// set. All generations (published versions) in use contain the changes that the store has removed. If the store has
// removed no live changes of the set, Freed returns 0.
func (l *Lists) Freed(set string) capping.Instant {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if of := l.sets[set]; of != nil {
		return of.freed
	}
	return 0
}

// AllFreed returns the result of Freed for each set with removed live changes (changes by API calls).
func (l *Lists) AllFreed() map[string]capping.Instant {
	l.mu.RLock()
	defer l.mu.RUnlock()
	freed := map[string]capping.Instant{}
	for set, of := range l.sets {
		if of.freed > 0 {
			freed[set] = of.freed
		}
	}
	return freed
}

// The method Records returns the live changes (changes by API calls) of all users for whom the function "keep" returns
// true, packed into records. A store that has lost live changes can store these records again.
func (l *Lists) Records(keep func(capping.UserID) bool) []*Record {
	l.mu.RLock()
	defer l.mu.RUnlock()
	var entries []entry
	for set, of := range l.sets {
		for key, b := range of.blocks {
			for i := range b.lows {
				if user := b.user(key, i); keep(user) {
					entries = append(entries, entry{set, l.clients[b.infos[i].by()], user, b.infos[i].at(),
						b.infos[i].kind()})
				}
			}
		}
	}
	return pack(entries)
}

// The method Pack combines old records of live changes (changes by API calls) into fewer records. The method Pack keeps
// only the latest change of each user in a set, and omits changes that the store has removed. If the argument "whole"
// is true, Pack also omits changes of the kind Forgotten. The argument "old" must then contain all stored records of
// its users.
func (l *Lists) Pack(old []*Record, whole bool) []*Record {
	l.mu.RLock()
	defer l.mu.RUnlock()
	seen := map[entry]bool{}
	var entries []entry
	for _, r := range old {
		of := l.sets[r.Set]
		if of == nil {
			of = newList()
		}
		for i := range r.Runs {
			run := &r.Runs[i]
			for kind, users := range run.Users {
				if run.At <= of.freed || whole && Kind(kind) == Forgotten {
					continue
				}
				for _, user := range users {
					e := entry{r.Set, r.By, user, run.At, Kind(kind)}
					if known, ok := of.of(user); ok && infoOf(e.at, 0, e.kind) < known&^(0xffff<<8) {
						continue // a later change of the user takes precedence
					}
					once := e
					once.by = ""
					if seen[once] { // a repeated call made the same change
						continue
					}
					seen[once] = true
					entries = append(entries, e)
				}
			}
		}
	}
	return pack(entries)
}

// An entry is a live change (change by an API call) that the function "pack" adds to a packed record.
type entry struct {
	set, by string
	user    capping.UserID
	at      capping.Instant
	kind    Kind
}

// The function "pack" groups changes by set, client and time, and packs them into records of at most RecordBytes.
func pack(entries []entry) (records []*Record) {
	slices.SortFunc(entries, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.set, b.set), cmp.Compare(a.by, b.by), cmp.Compare(a.at, b.at),
			cmp.Compare(a.user, b.user))
	})
	var r *Record
	size := 0
	for i := range entries {
		e := &entries[i]
		if r == nil || r.Set != e.set || r.By != e.by || size+mostBytes(e.user) > RecordBytes {
			r = &Record{Set: e.set, By: e.by}
			records, size = append(records, r), len(e.set)+len(e.by)+8
		}
		before := len(r.Runs)
		run := r.run(e.at)
		run.Users[e.kind] = append(run.Users[e.kind], e.user)
		if size += userBytes(e.user); len(r.Runs) > before {
			size += instantBytes + kinds
		}
	}
	return records
}

// userBytes returns the maximum number of bytes that a user's number takes in a stored record.
func userBytes(user capping.UserID) int {
	if user>>32 == 0 {
		return 5
	}
	return binary.MaxVarintLen64
}

// mostBytes returns the maximum number of bytes by which a change of the user makes a stored record longer.
func mostBytes(user capping.UserID) int { return userBytes(user) + instantBytes + kinds }
