package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"capper/internal/segments"
	"capper/internal/segments/publish"
)

// noteLosses adds warnings to the report about all sets that lose users, even a single user. A loss of users is
// important, because users who have left a suppressed set may receive messages.
func (r *buildReport) noteLosses(p *publish.Proposal, found *publish.Findings) {
	losses := &lossWarnings{accepted: p.Candidate.Accepted}
	if (len(found.Refusals) == 0 || r.forcing) && !r.held {
		losses.live = p.Base.Name
	}
	losses.remedy = func(c *publish.Change) string {
		if r.dryRun {
			return fmt.Sprintf("build with --accept %q so that they accept the loss", publish.Suggest(c))
		}
		return fmt.Sprintf("to make them accept the loss, roll back to %s, then build with --accept %q and --force",
			losses.live, publish.Suggest(c))
	}
	r.Warnings = append(r.Warnings, losses.of(found.Sets)...)
	r.Warnings = append(r.Warnings, olderSets(p, found, r.forcing)...)
	r.Warnings = append(r.Warnings, losses.zones(p.Candidate, p.Base.Generation)...)
	for _, text := range found.Used {
		r.Warnings = append(r.Warnings,
			fmt.Sprintf("the acceptance %q was already used by an earlier build and is valid once: remove it from "+
				"this build", text))
	}
}

// olderSets returns a warning for each set whose as-of time (time up to which the set reflects all changes) is earlier
// than in the version in use. For a set with unchanged users, olderSets returns a warning only if a build with --force
// states the earlier as-of time.
func olderSets(p *publish.Proposal, found *publish.Findings, forced bool) (warnings []string) {
	if p.Base.Generation == nil {
		return nil
	}
	for i := range p.Candidate.Sets {
		set := &p.Candidate.Sets[i]
		was := p.Base.Generation.Manifest.AsOf(set.Name)
		same := slices.ContainsFunc(found.Sets,
			func(c publish.Change) bool { return c.Name() == set.Name && c.State == publish.Same })
		if was.IsZero() || set.AsOf.IsZero() || !set.AsOf.Before(was) || same && !(forced && set.AsOfGiven) {
			continue
		}
		warnings = append(warnings, fmt.Sprintf("set %s: its as_of %s is earlier than %s of the live generation: "+
			"services "+
			"that have removed changes by calls in between reject the build: state with --as-of when the export began",
			set.Name, set.AsOf.UTC().Format(time.RFC3339), was.UTC().Format(time.RFC3339)))
	}
	return warnings
}

// lossWarnings creates the warnings of a report about users who leave sets.
type lossWarnings struct {
	accepted []segments.Accepted
	// The field live is the name of the generation (published version) that services continue to use if they reject the
	// losses. If nothing is published, live is "".
	live string
	// The function "remedy" returns a text with the commands that make services accept the loss.
	remedy func(*publish.Change) string
}

// The method "of" returns the warnings about sets that lose users. For several sets whose names have the same text
// before the slash, the method "of" returns one common warning.
func (l *lossWarnings) of(changes []publish.Change) (warnings []string) {
	var folders []string
	inFolder := map[string][]publish.Change{}
	for _, c := range changes {
		folder, _, isIn := strings.Cut(c.Set, "/")
		switch {
		case c.Removed == 0:
		case !isIn || c.State == publish.Vanishes && l.told(&c):
			warnings = append(warnings, l.one(&c))
		default:
			if inFolder[folder] == nil {
				folders = append(folders, folder)
			}
			inFolder[folder] = append(inFolder[folder], c)
		}
	}
	for _, folder := range folders {
		warnings = append(warnings, l.folder(folder, inFolder[folder]))
	}
	return warnings
}

// The method "told" reports whether the removal of a set needs a separate warning, because services may require the
// set. If --accept permits the removal of a time zone set, services also accept the removal, so a separate warning is
// not necessary.
func (l *lossWarnings) told(c *publish.Change) bool {
	if isZone(c.Set) {
		return l.live != "" && !l.passes(c)
	}
	return l.live != "" || l.passes(c)
}

func isZone(set string) bool { return strings.HasPrefix(set, segments.ZonePrefix) }

func (l *lossWarnings) passes(c *publish.Change) bool {
	return slices.ContainsFunc(l.accepted, func(a segments.Accepted) bool { return a.Set == c.Set && a.Removed > 0 })
}

func (l *lossWarnings) one(c *publish.Change) string {
	switch {
	case c.State == publish.Vanishes && isZone(c.Set):
		return fmt.Sprintf("set %q vanishes with %d users: services that use time zones of users will keep "+
			"generation %s: %s",
			c.Set, c.Before, l.live, l.remedy(c))
	case c.State == publish.Vanishes && l.told(c):
		return fmt.Sprintf("set %q vanishes with %d users: services that suppress it reject every generation "+
			"without the set, even with --accept, until their configuration contains no_longer_suppressed: [%s]",
			c.Set,
			c.Before, c.Set)
	}
	text := fmt.Sprintf("%d of %d users leave %s, such as %s", c.Removed, c.Before, c.What(), c.LeftText())
	switch {
	case l.passes(c):
		return text + ": accepted"
	case l.live == "" || isZone(c.Set) || c.Removed <= segments.Allowed(c.Before, segments.DefaultMayLose):
		return text
	}
	return text + fmt.Sprintf(": services that suppress %s will keep generation %s: %s", c.Set, l.live, l.remedy(c))
}

// The method "zones" returns a warning if services would reject the generation (published version) because users lose
// their time zone. The method "zones" does not warn of the removal of a whole time zone set, because such a removal has
// a separate warning.
func (l *lossWarnings) zones(c *publish.Candidate, before *segments.Generation) []string {
	if l.live == "" || before == nil {
		return nil
	}
	lost := c.LostZones(before)
	if lost == nil {
		return nil
	}
	lost.Losses = slices.DeleteFunc(lost.Losses, func(loss segments.Loss) bool { return loss.Vanished })
	if len(lost.Losses) == 0 && lost.ZoneLeft == 0 {
		return nil
	}
	return []string{fmt.Sprintf("services that use time zones of users will keep generation %s: %v", l.live, lost)}
}

// The method "folder" returns one warning about several sets that lose users, and whose names have the same text before
// the slash. The warning names the set that loses most users.
func (l *lossWarnings) folder(folder string, changes []publish.Change) string {
	most := slices.MaxFunc(changes, func(a, b publish.Change) int { return cmp.Compare(a.Removed, b.Removed) })
	if len(changes) == 1 {
		return l.one(&most)
	}
	var users uint64
	for _, c := range changes {
		users += c.Removed
	}
	return fmt.Sprintf("%d users leave %d sets of %s/*, most of them %s (%d of %d)",
		users, len(changes), folder, most.What(), most.Removed, most.Before)
}

// noteWaiting adds a warning to the report if the command has not published new users of a set that only grows.
func (r *buildReport) noteWaiting(changes []publish.Change, live *segments.Manifest, remedy string) {
	for _, c := range changes {
		grows := slices.ContainsFunc(live.Sets, func(s segments.Set) bool { return s.Name == c.Set && s.OnlyGrows })
		grew := slices.ContainsFunc(r.SetsThatGrew, func(g publish.Grown) bool { return g.Set == c.Set })
		if grows && c.Added > 0 && !grew {
			r.Warnings = append(r.Warnings, fmt.Sprintf("%d users who join set %q are not published%s", c.Added, c.Set,
				remedy))
		}
	}
}
