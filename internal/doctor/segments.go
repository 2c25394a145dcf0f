package doctor

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"capper/internal/config"
	"capper/internal/ids"
	"capper/internal/objects"
	"capper/internal/segments"
)

// readTime is the time limit for reading a whole segments generation (published version).
const readTime = 2 * time.Minute

// lookTime is the time limit of a check that reads from the location of the segments or of the audit.
const lookTime = 20 * time.Second

func segmentsChecks(s *Subject) []check {
	checks := []check{
		{Name: "segments.generation", Within: readTime, Look: s.lookAtGeneration},
		{Name: "segments.list", Within: lookTime, Look: s.lookAtList},
		{Name: "segments.cache", Within: lookTime, Look: s.lookAtCache},
	}
	if s.Publisher {
		checks = append(checks, check{Name: "segments.publisher", Within: lookTime, Look: s.tryPublisher})
	}
	return checks
}

// The method source opens the location of the segments for a check. After an error, the method source adds a finding
// and returns nil.
func (s *Subject) source(ctx context.Context, n *notes) objects.Location {
	at, err := objects.Open(ctx, s.Config.Segments.Source, s.Config.Segments.S3)
	if err != nil {
		n.Fail(s.Config.Segments.Source, err.Error(), "correct segments.source",
			"the service has no segments without "+
				"this location")
		return nil
	}
	return at
}

const needsRead = "the service needs s3:GetObject on the prefix"

// lookAtGeneration reads the whole published segments generation, with the code of the service.
func (s *Subject) lookAtGeneration(ctx context.Context, n *notes) {
	at := s.source(ctx, n)
	if at == nil {
		return
	}
	m, err := segments.ReadLiveManifest(ctx, at)
	switch {
	case errors.Is(err, segments.ErrNothingLive):
		n.Fail(at.Name(), "no generation is published at this "+
			"location: "+err.Error(), "segmentbuild build --to "+at.Name()+
			" --segment NAME=FILE publishes a first generation, or correct segments.source",
			"the service does not start without a generation")
		return
	case err != nil:
		n.Fail(at.Name(), err.Error(), "check that this machine can reach the location and that the credentials may "+
			"read: "+needsRead,
			"the service can start only from its cache, and loads no new generation")
		return
	}
	bytes, faults := int64(0), 0
	for _, entry := range m.Entries() {
		bytes += entry.SizeBytes
		if _, err := segments.ReadSegment(ctx, at, m, entry.Name); err != nil {
			faults++
			n.Fail(entry.Name, err.Error(), "publish again, or run segmentbuild rollback",
				"a generation with a fault is rejected: the previous one stays in use")
		}
	}
	if faults == 0 {
		n.OK(at.Name(), "generation %s is complete: %d segments and %d sets, %s", m.Generation, len(m.Segments),
			len(m.Sets), bytesText(bytes))
	}
	s.judgeIDs(ctx, n, at, m)
	s.judgeAge(n, m)
	s.judgeSets(n, m)
	s.judgeLosses(ctx, n, at, m)
}

// judgeIDs compares the kind of the user ids in the segments with the id key at the location and with the
// configuration. If the ids are dense (32-bit numbers) and the configuration does not contain the key "ids", judgeIDs
// adds no finding.
func (s *Subject) judgeIDs(ctx context.Context, n *notes, at objects.Location, m *segments.Manifest) {
	const name, starts = "ids", "the service does not start"
	kind := ids.Dense.String()
	if m.IDs != nil {
		kind = m.IDs.Kind
	}
	if m.IDs == nil && s.Config.IDs == "" {
		return
	}
	_, err := segments.ReadScheme(ctx, at, m)
	switch configured := s.Config.IDs; {
	case err != nil:
		n.Fail(name, err.Error(), "restore "+segments.IDsKey+" at "+at.Name()+" from a copy", starts+
			": without this key no log is found again")
	case configured != "" && configured != kind:
		n.Fail(name, "the configuration says "+configured+", but the location has ids of the kind "+kind,
			"correct ids or segments.source", starts)
	case m.IDs != nil:
		n.OK(name, "%s: %d ids in a dictionary of %s", kind, m.IDs.Count, bytesText(m.IDs.Dictionary[0].SizeBytes))
	case configured != "":
		n.OK(name, "%s", kind)
	}
}

func (s *Subject) judgeAge(n *notes, m *segments.Manifest) {
	oldest := cmp.Or(s.MaxAge, 7*24*time.Hour)
	exact := s.now().Sub(m.CreatedAt)
	unit := time.Minute
	if exact.Abs() < time.Hour {
		unit = time.Second
	}
	age := exact.Round(unit)
	switch {
	case exact > oldest:
		n.Warn("age", fmt.Sprintf("the generation is %s old, more than %s", age, oldest),
			"find out why segmentbuild has published nothing since, or set --max-age",
			"users who changed segments still have the limits of their old segment")
	case age < -time.Minute:
		n.Warn("age", fmt.Sprintf("the generation was created %s in the future", -age),
			"set the clock of this machine, or of the machine that builds segments", "one of the two clocks is wrong")
	default:
		n.OK("age", "generation was created %s ago", max(age, 0))
	}
}

// judgeSets compares the sets in the configuration with the published sets.
func (s *Subject) judgeSets(n *notes, m *segments.Manifest) {
	var sets, names, missing []string
	for i := range m.Sets {
		sets = append(sets, m.Sets[i].Name)
	}
	for i := range m.Segments {
		names = append(names, m.Segments[i].Name)
	}
	needed := s.Config.Policy.Sets()
	for _, name := range needed {
		if !slices.Contains(sets, name) && !s.Config.Sets.IsLive(name) {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		n.Fail("sets", "missing: "+strings.Join(missing, ", "), "publish the sets, or remove them from suppress and "+
			"quiet",
			"users of sends that these sets could deny are unavailable until the sets are published")
	} else {
		n.OK("sets", "the generation has all %d sets that the configuration requires", len(needed))
	}
	configured, unlimited := s.Config.Policy.Unmatched(names)
	for _, name := range configured {
		n.Warn("limits.segments."+name, "the generation does not have this segment",
			"publish the segment, or remove its "+
				"limits",
			"these limits apply to no user")
	}
	if len(unlimited) > 0 && len(s.Config.Policy.Default) == 0 {
		n.Warn("limits.default", "limits.default is not set, "+
			"and "+strings.Join(unlimited, ", ")+" have no limits",
			"set limits.default", "these users are uncapped")
	}
}

// judgeLosses counts the users that sets have lost from the cached segments generation to the published generation. A
// service makes the same check at its start. Without a cached generation (published version), judgeLosses compares with
// the previous generation at the location.
func (s *Subject) judgeLosses(ctx context.Context, n *notes, at objects.Location, m *segments.Manifest) {
	for _, warning := range config.LooseLists(s.Config.Policy, m) {
		n.Warn("lists", warning, "publish the set with only_grows, and check that it is the right set",
			"users who must not receive messages may receive them")
	}
	for i := range s.Config.Policy.Suppress {
		if of := &s.Config.Policy.Suppress[i]; of.MaxAge > 0 && s.now().Sub(m.CreatedAt) > of.MaxAge {
			n.Warn("lists", fmt.Sprintf("suppress.%s: the generation is older than max_age %s", of.Set, of.MaxAge),
				"run segmentbuild again",
				"sends that the set may deny are unavailable, unless a later build confirmed the set")
		}
	}
	guarded := config.Guarded(s.Config.Policy)
	if len(guarded.MayLose) == 0 && !guarded.Zones {
		return
	}
	against, unjudged, err := segments.Judge(ctx, at, s.Config.Segments.Refresher.CacheDir, m, guarded)
	switch {
	case err != nil:
		n.Fail("losses", err.Error(), "publish a corrected build, or accept the change: segmentbuild build --accept",
			"a running service keeps its generation, a starting one uses the previous one, and neither loads new "+
				"generations")
	case len(unjudged) > 0:
		n.Skip("losses", "not compared: %s", strings.Join(unjudged, "; "))
	default:
		n.OK("losses", "compared with generation %s: no protected set lost more users than allowed", against)
	}
}

func (s *Subject) lookAtList(ctx context.Context, n *notes) {
	at := s.source(ctx, n)
	if at == nil {
		return
	}
	list, err := at.List(ctx, segments.GenerationsPrefix)
	if err != nil {
		n.Warn(at.Name(), err.Error(), reachOr(err, "grant s3:ListBucket on the bucket, at least for the prefix"),
			"without s3:ListBucket a missing object looks like a forbidden one, and earlier generations are not shown")
		return
	}
	n.OK(at.Name(), "lists %d manifests", len(list))
}

// tryPublisher checks, by writing a test object, whether this machine has the permissions for publishing segments.
func (s *Subject) tryPublisher(ctx context.Context, n *notes) {
	at := s.source(ctx, n)
	if at == nil {
		return
	}
	tryWriting(ctx, n, at, "segmentbuild needs s3:PutObject, s3:ListBucket and, for gc and this check, "+
		"s3:DeleteObject")
}

// tryWriting writes, replaces and removes a test object at the location of the segments, and adds a finding with the
// name of the object.
func tryWriting(ctx context.Context, n *notes, at objects.Location, rights string) {
	key := "doctor-" + strings.ToLower(rand.Text()) + ".json"
	_, _, err := at.ReadTagged(ctx, objects.ProbeKey, "")
	probed := err == nil
	tag, err := at.Replace(ctx, key, []byte("{}\n"), "")
	switch {
	case errors.Is(err, objects.ErrNoConditions):
		n.Fail("conditional put", err.Error(), "use an S3 server that supports If-Match and If-None-Match",
			"two concurrent publishers could overwrite each other; segmentbuild rejects such a server")
	case err != nil:
		n.Fail("put", err.Error(), reachOr(err, rights), "segments cannot be published")
	default:
		n.OK("put", "wrote %s", key)
		if _, err := at.Replace(ctx, key, []byte("{}\n"), ""); errors.Is(err, objects.ErrLostRace) {
			n.OK("conditional put", "%s, version %s, was not overwritten by a conditional write", key, tag)
		} else {
			n.Fail("conditional put", fmt.Sprintf("a second writer was not rejected: %v", err),
				"use an S3 server that supports If-Match and If-None-Match",
				"two publishers could overwrite each other")
		}
	}
	remove(ctx, n, at, key, probed)
}

// The function remove removes the test object of a check, even if the check failed.
func remove(ctx context.Context, n *notes, at objects.Location, key string, probed bool) {
	written := []string{key}
	if !probed {
		written = append(written, objects.ProbeKey)
	}
	for _, key := range written {
		if err := at.Delete(ctx, key); err != nil {
			n.Warn("delete", err.Error(), reachOr(err, "grant s3:DeleteObject, and remove "+key),
				"segmentbuild gc cannot remove unused objects")
			return
		}
	}
	n.OK("delete", "removed %s", strings.Join(written, " and "))
}
