package archive

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"capper/internal/audit"
	"capper/internal/bitmap"
	"capper/internal/capping"
	"capper/internal/objects"
	"capper/internal/parallel"
)

// Erased is the set of users whose data was erased on request. Readers must hide an erased user in all records from
// before the user's erasure.
type Erased struct {
	at  map[capping.UserID]capping.Instant // time of the user's last erasure
	all *bitmap.Bitmap                     // the erased users with dense ids; nil: none
}

// maxErasureBytes is the maximum size in bytes of the document that records one erasure of users.
const maxErasureBytes = 64 << 20

// The method Erased reads the erased users, and the times of their erasures, from the audit location.
func (a *Archive) Erased(ctx context.Context) (*Erased, error) {
	found, err := a.at.List(ctx, audit.ErasedPrefix)
	if err != nil {
		return nil, fmt.Errorf("list erasures: %w", err)
	}
	list, faults := make([]audit.Erasure, len(found)), make([]error, len(found))
	parallel.AtMost(readsAtOnce, len(found), func(i int) {
		if isErasure(found[i].Key) {
			list[i], faults[i] = a.readErasure(ctx, found[i].Key)
		}
	})
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	return newErased(list, a.ids), nil
}

// isErasure reports whether an object is the document of an erasure. The key must begin with the prefix of erasures.
// Each object below the prefix of erasures is an erasure, or a temporary file of a killed writer.
func isErasure(key string) bool {
	name := strings.TrimPrefix(key, audit.ErasedPrefix)
	return strings.HasSuffix(name, ".json") && !strings.HasPrefix(name, objects.TempPrefix)
}

func (a *Archive) readErasure(ctx context.Context, key string) (e audit.Erasure, err error) {
	raw, err := a.at.Read(ctx, key, maxErasureBytes)
	if errors.Is(err, objects.ErrNotFound) {
		return e, nil // another process has merged this erasure with others
	}
	if err == nil {
		err = audit.Unseal(raw, &e)
	}
	if err == nil {
		var ids audit.IDs
		if ids, err = e.IDs(); err == nil {
			err = ids.Same(a.ids)
		}
	}
	if err != nil {
		return e, &FileError{key, err}
	}
	return e, nil
}

func newErased(list []audit.Erasure, ids audit.IDs) *Erased {
	e := &Erased{at: map[capping.UserID]capping.Instant{}}
	for _, erasure := range list {
		at := capping.InstantOf(erasure.At)
		for _, user := range erasure.Users {
			e.at[user] = max(e.at[user], at)
		}
	}
	if len(e.at) > 0 && ids.Dense() {
		users := make([]uint32, 0, len(e.at))
		for user := range e.at {
			users = append(users, capping.Dense(user))
		}
		e.all = bitmap.Of(users...)
	}
	return e
}

// Users returns the number of erased users.
func (e *Erased) Users() int { return len(e.at) }

// The method At returns the time of the user's last erasure. The result "ok" of At is false if the user was never
// erased.
func (e *Erased) At(user capping.UserID) (at capping.Instant, ok bool) {
	at, ok = e.at[user]
	return at, ok
}

// The method Hides reports whether readers must hide the user in the record of a call at the given instant.
func (e *Erased) Hides(user capping.UserID, at capping.Instant) bool {
	erased, ok := e.at[user]
	return ok && at < erased
}

// The method Latest returns the time of the latest erasure, or 0 if there is none.
func (e *Erased) Latest() (latest capping.Instant) {
	for _, at := range e.at {
		latest = max(latest, at)
	}
	return latest
}

// Apply removes the users who were erased after the recorded call from the record. The result of Apply is the number of
// users who were removed from the record.
func (e *Erased) Apply(r *audit.Record) (taken int64) {
	if len(e.at) == 0 {
		return 0
	}
	kept := r.Groups[:0]
	for _, g := range r.Groups {
		before := g.Count()
		if g.Users == nil {
			g.Images = e.withoutImages(g.Images, r.At)
		} else {
			g.Users = e.without(g.Users, r.At)
		}
		after := g.Count()
		if taken += int64(before - after); after > 0 {
			kept = append(kept, g)
		}
	}
	r.Groups = kept
	return taken
}

// The method "without" returns the given users whom readers may show in the record of a call at the given instant.
func (e *Erased) without(users *bitmap.Bitmap, at capping.Instant) *bitmap.Bitmap {
	if users.Cardinality() > uint64(len(e.at)) {
		if n, _ := bitmap.Common(users, e.all, 0); n == 0 {
			return users
		}
	}
	drop := e.among(users, at)
	if len(drop) == 0 {
		return users
	}
	if users.Cardinality() <= few {
		ids := slices.DeleteFunc(users.IDs(), func(id uint32) bool { return e.Hides(capping.UserID(id), at) })
		return bitmap.OfSorted(ids)
	}
	var set bitmap.Set
	set.AddBitmap(users)
	set.Subtract(bitmap.Of(capping.AppendDense(nil, drop)...))
	return set.Bitmap()
}

// withoutImages works like the method "without", for id images (64-bit hashes of ids) instead of dense ids.
func (e *Erased) withoutImages(images []capping.UserID, at capping.Instant) []capping.UserID {
	if len(images) <= len(e.at) {
		return slices.DeleteFunc(images, func(image capping.UserID) bool { return e.Hides(image, at) })
	}
	var places []int
	for image, erased := range e.at {
		if place, found := slices.BinarySearch(images, image); found && at < erased {
			places = append(places, place)
		}
	}
	if len(places) == 0 {
		return images
	}
	slices.Sort(places)
	kept := images[:places[0]]
	for i, place := range places {
		end := len(images)
		if i+1 < len(places) {
			end = places[i+1]
		}
		kept = append(kept, images[place+1:end]...)
	}
	return kept
}

// If a group has at most "few" users, the archive checks each user separately for an erasure.
const few = 4096

// The method "among" returns the given users whom readers must hide in the record of a call at the given instant.
func (e *Erased) among(users *bitmap.Bitmap, at capping.Instant) (hidden []capping.UserID) {
	if users.Cardinality() <= uint64(len(e.at)) {
		for id := range users.All() {
			if user := capping.UserID(id); e.Hides(user, at) {
				hidden = append(hidden, user)
			}
		}
		return hidden
	}
	for user, erased := range e.at {
		if at < erased && users.Contains(capping.Dense(user)) {
			hidden = append(hidden, user)
		}
	}
	return hidden
}
