package publish

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"capper/internal/ids"
	"capper/internal/objects"
	"capper/internal/segments"
)

// NotYet returns a *segments.IDsError for an operation that supports no other ids than dense ones (32-bit integers). If
// the user ids are dense, NotYet returns nil.
func NotYet(is *segments.IDs, operation string) error {
	if is == nil {
		return nil
	}
	return segments.IDsErrorf("this location has ids of the kind %s, but %s supports only dense ids (32-bit integers)",
		is.Kind, operation)
}

// LocationIDs describes the kind and hash key of the user ids at a location.
type LocationIDs struct {
	// Scheme is the kind and hash key of the ids. For dense ids (32-bit integers), Scheme is nil.
	Scheme *ids.Scheme
	// New is true if the location has no ids.json yet, so that the first publish must create this object.
	New bool
}

// ReadIDs returns the kind and hash key of a location's user ids for a build. The argument "wanted" of ReadIDs is the
// kind of ids that the operator states. If "wanted" is nil, the operator wants the location's present kind of ids. If
// the location has no ids yet, ReadIDs returns the wanted kind and a new random hash key. The error is a
// *segments.IDsError if the location has another kind, or if its ids.json does not belong to its newest generation
// (published version). ReadIDs does not write to the location.
func ReadIDs(ctx context.Context, at objects.Source, wanted *ids.Kind) (*LocationIDs, error) {
	f, found, err := segments.ReadIDsFile(ctx, at)
	if err != nil {
		return nil, err
	}
	if found && wanted != nil && *wanted != f.Kind {
		return nil, otherKind(ctx, at, f.Kind, *wanted)
	}
	if !found && (wanted == nil || *wanted == ids.Dense) {
		m, err := newestManifest(ctx, at)
		if err != nil || m == nil { // the guard reports damage; Publish reports a live generation of another kind
			return &LocationIDs{}, ctx.Err()
		}
		_, err = segments.ReadScheme(ctx, at, m)
		return &LocationIDs{}, err
	}
	is := &LocationIDs{New: !found}
	if found {
		is.Scheme = f.Scheme()
	} else {
		is.Scheme = ids.New(*wanted, ids.NewKey())
	}
	m, err := newestManifest(ctx, at)
	switch {
	case err != nil && !found:
		return nil, segments.IDsErrorf(
			"the kind of ids cannot become %s, because the generations (published versions) are unreadable: %v",
			is.Scheme.Kind(), err)
	case err != nil || m == nil: // the guard reports damage
		return is, nil
	case found:
		_, err := segments.ReadScheme(ctx, at, m)
		return is, err
	case m.IDs == nil:
		return nil, segments.IDsErrorf(
			"--ids must be dense, as in generation (published version) %s of this location, got %s: "+
				"use a new location for other ids", m.Generation, *wanted)
	}
	_, err = segments.ReadScheme(ctx, at, m)
	return nil, err
}

// otherKind returns the error for a build whose operator states another kind of ids than the location's ids.json.
func otherKind(ctx context.Context, at objects.Source, is, wanted ids.Kind) error {
	advice := "use a new location"
	if newest, err := Newest(ctx, at); err == nil && newest == "" {
		advice = "the location has no generation, because a first build failed. If no service has ever used the " +
			"location and no other build is running, delete " + segments.IDsKey + " and build again"
	}
	return segments.IDsErrorf("this location has ids of the kind %s, but --ids names the kind %s: %s",
		is, wanted, advice)
}

// newestManifest returns the manifest of the live generation (published version that current.json names). If no
// generation is live, newestManifest returns the manifest of the newest generation. If the location has no generation
// at all, newestManifest returns nil.
func newestManifest(ctx context.Context, at objects.Source) (*segments.Manifest, error) {
	m, err := segments.ReadLiveManifest(ctx, at)
	if !errors.Is(err, segments.ErrNothingLive) {
		return m, err
	}
	newest, err := Newest(ctx, at)
	if err != nil || newest == "" {
		return nil, err
	}
	return segments.ReadManifest(ctx, at, newest)
}

// sameIDs reports whether users have the same numbers in the live manifest and in the candidate (built but unpublished
// generation). sameIDs also requires that both have a BackFile (file with the user ids), or neither has one.
func (c *Candidate) sameIDs(live *segments.Manifest) bool {
	is := c.contentOf(nil, nil)
	return is.SameNumbers(live) && len(is.Objects()) == len(live.Objects())
}

// checkIDs returns a *segments.IDsError if the ids of the live generation (published version that current.json names)
// and of the candidate (built but unpublished generation) have different kinds or hash keys.
func (c *Candidate) checkIDs(base *LiveState) error {
	live := base.manifest
	switch {
	case live == nil:
		return nil
	case live.IDs == nil && c.Scheme == nil:
		return nil
	case live.IDs == nil:
		return segments.IDsErrorf(
			"generation (published version) %s has dense ids (32-bit integers), but the build has ids of the kind %s",
			live.Generation, c.Scheme.Kind())
	case c.Scheme == nil:
		return segments.IDsErrorf(
			"generation (published version) %s has ids of the kind %s, but file %s with the hash key is missing: "+
				"restore the file from a backup or a service's cache, because ids hashed with a new key match no user",
			live.Generation, live.IDs.Kind,
			segments.IDsKey)
	case live.IDs.Kind != c.Scheme.Kind().String() || live.IDs.Check != c.Scheme.Check():
		return segments.IDsErrorf(
			"generation (published version) %s and the new build differ in the kind or the hash key of user ids: "+
				"the generation has ids of the kind %s (fingerprint of the hash key: %s), the build %s (%s)",
			live.Generation, live.IDs.Kind, live.IDs.Check, c.Scheme.Kind(),
			c.Scheme.Check())
	}
	return nil
}

// keepIDs ensures that the object ids.json has the kind and hash key of the given scheme. The first publish to a
// location creates ids.json, unless another process has created ids.json. If another process has created ids.json with
// another hash key, the error is objects.ErrLostRace.
func (p *Publisher) keepIDs(ctx context.Context, scheme *ids.Scheme, base *LiveState) error {
	if scheme == nil {
		return nil
	}
	wanted := ids.File{Kind: scheme.Kind(), Key: scheme.Key()}
	is, found, err := segments.ReadIDsFile(ctx, p.Location)
	switch {
	case err != nil:
		return err
	case found && is != wanted:
		return fmt.Errorf("%w: the kind or the hash key of user ids changed in file %s after the start of the build",
			objects.ErrLostRace,
			segments.IDsKey)
	case found:
		return nil
	case base.manifest != nil:
		return segments.IDsErrorf("file %s was removed since the start of the build: "+
			"restore the file from a backup or a service's cache", segments.IDsKey)
	}
	_, err = p.Location.Replace(ctx, segments.IDsKey, wanted.Encode(), "")
	if errors.Is(err, objects.ErrLostRace) {
		return fmt.Errorf("%w: the other process created file %s", err, segments.IDsKey)
	}
	return err
}

// ForComparison returns the earlier of two generations (published versions) with its bitmaps converted to the user
// numbers of the later one. If the ids of the two generations have different kinds or hash keys, the error is a
// *segments.IDsError.
func ForComparison(earlier, later *segments.Generation) (*segments.Generation, error) {
	if !earlier.Manifest.SameIDs(later.Manifest) {
		return nil, segments.IDsErrorf(
			"generations (published versions) %s and %s cannot be compared: "+
				"their user ids differ in kind or hash key",
			earlier.Manifest.Generation, later.Manifest.Generation)
	}
	return earlier.RenumberedBy(later.Dictionary)
}

// SameNumbers converts an earlier generation (published version) and the live generation to the user numbers of one
// dictionary, so that a rollback can take sets from both. If the ids of the two generations have different kinds or
// hash keys, the error is a *segments.IDsError.
func SameNumbers(earlier *segments.Generation, base *LiveState) (*segments.Generation, *LiveState, error) {
	if base.Generation == nil {
		return earlier, base, nil
	}
	if !earlier.Manifest.SameIDs(base.manifest) {
		return nil, nil, segments.IDsErrorf(
			"generation (published version) %s and the live generation %s differ in the kind or the hash key of ids",
			earlier.Manifest.Generation, base.Name)
	}
	unified := *base
	var err error
	earlier, unified.Generation, err = segments.Unify(earlier, base.Generation)
	return earlier, &unified, err
}

// The method Numbered converts a candidate from SetsThatGrew and the live state "base" to the user numbers of one
// dictionary. The common dictionary has the users of the candidate and of the live state. The receiver c must be the
// original candidate (built but unpublished generation), whose method SetsThatGrew was called.
func (c *Candidate) Numbered(grown *Candidate, base *LiveState) (*Candidate, *LiveState, error) {
	if c.Dictionary == nil {
		return grown, base, nil
	}
	if c.Carried != nil { // the dictionary already has all users of both
		return grown.numberedAs(c), base, nil
	}
	own := &segments.Generation{Manifest: c.content(), Scheme: c.Scheme, Dictionary: c.Dictionary, Back: c.Back}
	all, err := segments.Extend(base.Generation, own)
	if err != nil {
		return nil, nil, err
	}
	by := *base
	if by.Generation, err = base.Generation.Original().RenumberedBy(all.Dictionary); err != nil {
		return nil, nil, err
	}
	next := *grown
	next.Scheme, next.Dictionary, next.Back = c.Scheme, all.Dictionary, all.Back
	next.Bitmaps, next.Sets = nil, slices.Clone(grown.Sets)
	for _, b := range grown.Bitmaps {
		next.Bitmaps = append(next.Bitmaps, all.Bitmap(b))
	}
	for i := range next.Sets {
		next.Sets[i].Bitmap = all.Bitmap(next.Sets[i].Bitmap)
	}
	return &next, &by, nil
}

// The method "texts" returns the ids of the users with the given numbers. For dense ids (32-bit integers), the result
// is nil, because these ids equal the numbers. The argument "before" of the method "texts" is the earlier generation
// (published version), which has the ids of users who have left; it may be nil.
func (c *Candidate) texts(numbers []uint32, before *segments.Generation) (list []string) {
	if c.Dictionary == nil {
		return nil
	}
	is := c.named
	if is == nil {
		is = &segments.Generation{Scheme: c.Scheme, Dictionary: c.Dictionary, Back: c.Back}
	}
	for _, number := range numbers {
		of := is
		if number >= c.Dictionary.Len() {
			of = before
		}
		list = append(list, string(of.RenumberedName(nil, number)))
	}
	return list
}

// textOf joins ids with commas for a message. If there are no text ids, textOf joins the dense ids (32-bit integers).
func textOf(dense []uint32, texts []string) string {
	if len(texts) > 0 {
		return strings.Join(texts, ", ")
	}
	return list(dense)
}
