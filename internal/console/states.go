package console

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"capper/client/api"
	"capper/internal/console/frame"
)

// A state describes a component of the service, and the remedy for a problem.
type state struct {
	Class  string // good, note, warn or bad
	Part   string
	What   string // a sentence
	Do     string // remedy in sentences; "": no remedy is necessary
	Detail string // status text of the service
}

// Word returns a word such as good or bad for the class of the state, for people who cannot see its colour.
func (s state) Word() string {
	return map[string]string{"good": "OK", "note": "Note", "warn": "Look at this", "bad": "Trouble"}[s.Class]
}

func good(part, format string, args ...any) state {
	return state{Class: "good", Part: part, What: fmt.Sprintf(format, args...)}
}

// A condition describes the state of the whole service: a sentence, the components that need attention, and the other
// components.
type condition struct {
	Class string // good, warn or bad
	Line  string // a sentence
	Look  []state
	Rest  []state
}

// conditionOf combines the states of all components to the condition of the service. The caller of conditionOf passes
// the states in order, beginning with the worst.
func conditionOf(list []state) condition {
	look := slices.IndexFunc(list, func(s state) bool { return s.Class == "note" || s.Class == "good" })
	if look < 0 {
		look = len(list)
	}
	at := condition{Class: "good", Line: "Everything works.", Look: list[:look], Rest: list[look:]}
	switch {
	case look == 0:
		return at
	case list[0].Class == "bad":
		at.Class, at.Line = "bad", "Something is wrong: "+partsOf(at.Look, "bad")+"."
	default:
		at.Class, at.Line = "warn", "It works, but look at this: "+partsOf(at.Look, "warn")+"."
	}
	return at
}

// partsOf returns the names of the components whose state has the given class.
func partsOf(list []state, class string) string {
	var names []string
	for _, s := range list {
		if name := strings.ToLower(s.Part); s.Class == class && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return frame.List(names)
}

// The method Notes counts the components whose state is only a note, which needs no attention.
func (s condition) Notes() (n int) {
	for _, one := range s.Rest {
		if one.Class == "note" {
			n++
		}
	}
	return n
}

// The function "states" returns the states of all components, beginning with the worst.
func states(s *api.Status, now time.Time) []state {
	list := []state{ready(s), store(s.Store)}
	list = append(list, storeNotes(s.Store)...)
	list = append(list, segments(s, now))
	list = append(list, configuration(s.Config, now)...)
	list = append(list, auditState(s.Audit, now))
	rank := map[string]int{"bad": 0, "warn": 1, "note": 2, "good": 3}
	slices.SortStableFunc(list, func(a, b state) int { return rank[a.Class] - rank[b.Class] })
	return list
}

func ready(s *api.Status) state {
	if s.Ready {
		return good("Service", "the service is ready for calls.")
	}
	return state{"bad", "Service", "the service is not ready now: load balancers send no calls.",
		"The parts below show the reason; a start or stop ends by itself.", ""}
}

// The function store returns the state of the service's store, with warnings and remedies.
func store(s api.StoreStatus) state {
	kind := "Redis"
	if s.Kind == "embedded" {
		kind = "the embedded store in " + s.Path
	}
	switch s.State {
	case "ok":
		return good("Store", "%s works: sends are decided and recorded.", kind)
	case "down":
		return state{"bad", "Store", kind + " does not answer: no user is allowed, and all results are unavailable.",
			"Check that it runs and has free disk space. Campaigns can be retried later without counting any user " +
				"twice. " + chapter(s) + ".", s.Error}
	}
	return state{"warn", "Store", kind + " works in part: some users may be unavailable.",
		"Retry these users later; no user is counted twice. " + chapter(s) + ".", s.Error}
}

// The function "chapter" returns the name of the chapter in the documentation about the kind of the service's store.
func chapter(s api.StoreStatus) string {
	if s.Kind == "embedded" {
		return "docs/operating.md, “The embedded store”"
	}
	return "docs/redis.md"
}

// createdEmpty is the beginning of the warning that the store reports after its first start. The console shows the
// warning about an empty store as a note, because a new store is not a problem.
const createdEmpty = "the store was created empty at this start"

// fleetDiffers is a part of every store warning about a difference between this instance and others, such as in
// config_version. The console skips warnings with the text fleetDiffers if it shows the same differences from
// Fleet.Differing.
const fleetDiffers = " other instances differ from this one in "

// The function "said" converts a status text of the service to a sentence that ends with a full stop.
func said(text string) string {
	if text = strings.TrimSpace(text); strings.HasSuffix(text, ".") {
		return text
	}
	return text + "."
}

// storeNotes returns states for warnings that the store reported at its start, and for differences between instances.
func storeNotes(s api.StoreStatus) (list []state) {
	for _, warning := range s.Warnings {
		if strings.HasPrefix(warning, createdEmpty) {
			list = append(list, state{"note", "Store", "the store was created empty at this start, as at every " +
				"first start: earlier sends are unknown.",
				"If sends were recorded before, the service uses another directory now: check that " +
					"store.embedded.path names the old one.", ""})
			continue
		}
		if s.Fleet != nil && strings.Contains(warning, fleetDiffers) {
			continue // the loop below creates states for these warnings
		}
		list = append(list, state{"warn", "Store", said(warning), "If this is not intended, change the setting and " +
			"restart.", ""})
	}
	if s.Fleet == nil {
		return list
	}
	for _, what := range slices.Sorted(maps.Keys(s.Fleet.Differing)) {
		list = append(list, state{"warn", "Instances", fmt.Sprintf("%d of the %d other instances differ from this "+
			"one in their %s.", s.Fleet.Differing[what], s.Fleet.Instances-1, what),
			"During a rollout this is normal; otherwise give all instances the same configuration. docs/redis.md, " +
				"“Instances of one fleet”.", ""})
	}
	return list
}

// The function "segments" returns the state of the segments, including their age.
func segments(s *api.Status, now time.Time) state {
	at := s.Segments
	if len(at.Missing) > 0 {
		return state{"bad", "Segments", "the segments in use lack sets that the configuration requires: " +
			strings.Join(at.Missing, ", ") + ".",
			"Publish the sets with segmentbuild, or remove them from the configuration (from suppress with " +
				"no_longer_suppressed). docs/operating.md, “Sets that must be there”.", ""}
	}
	if old := tooOld(at.Guarded); len(old) > 0 {
		return state{"bad", "Segments", "these suppressed sets are older than their max_age, so affected sends are " +
			"unavailable: " + strings.Join(old, ", ") + ".",
			"Find out why no build confirms them. docs/operating.md, “Lists that are too old”.", ""}
	}
	if at.Refused != nil {
		return state{"bad", "Segments", fmt.Sprintf("generation %s is published but rejected; generation %s stays "+
			"in use.", at.Refused.Generation, at.Generation),
			"Find out whether the change is intended. docs/operating.md, “A generation is refused”.",
			at.Refused.Error}
	}
	since := "since an unknown time"
	if !at.CreatedAt.IsZero() {
		since = "made " + frame.Relative(now, at.CreatedAt)
	}
	switch {
	case at.Error != "":
		return state{"warn", "Segments", fmt.Sprintf("the last refresh failed; generation %s (%s) stays in use.",
			at.Generation, since),
			"Check that the location of the segments can be reached, and check its content with segmentbuild " +
				"inspect. docs/operating.md, “Segments from S3”.", at.Error}
	case at.Origin == "cache":
		return state{"warn", "Segments", fmt.Sprintf("generation %s (%s) comes from the local cache, because the "+
			"location of the segments could not be reached.", at.Generation, since),
			"Check that the location of the segments can be reached.", ""}
	}
	return good("Segments", "generation %s is in use, %s.", at.Generation, since)
}

// tooOld returns the names of the sets that are older than their configured "max_age".
func tooOld(list []api.GuardedSet) (names []string) {
	for i := range list {
		if list[i].TooOld {
			names = append(names, list[i].Name)
		}
	}
	return names
}

// defaultsApply is a text by which the console recognises the service's warning about a segment without limits of its
// own. Because segments without limits of their own are common, the console shows a warning with the text defaultsApply
// only as a note.
const defaultsApply = " has no limits of its own: limits.default applies"

func configuration(c api.ConfigStatus, now time.Time) []state {
	list := []state{good("Configuration", "version %s is in force, loaded %s.", c.Version,
		frame.Relative(now, c.LoadedAt))}
	if c.Error != "" {
		list[0] = state{"warn", "Configuration", fmt.Sprintf("the configuration file was changed, but the change "+
			"was rejected %s; version %s stays in force.", frame.Relative(now, c.ErrorAt), c.Version),
			"Correct the fault below. capper check-config finds such faults before a change.", c.Error}
	}
	for _, problem := range c.Problems {
		class, do := "warn", "Change the setting if it is not intended."
		if strings.Contains(problem, defaultsApply) {
			class, do = "note", ""
		}
		list = append(list, state{class, "Configuration", said(problem), do, ""})
	}
	return list
}

func auditState(a *api.AuditStatus, now time.Time) state {
	switch {
	case a == nil:
		return good("Audit", "the audit is off, so past decisions cannot be looked up. The key audit in the "+
			"configuration turns it on.")
	case a.State == "ok":
		return good("Audit", "every decision is recorded to %s, %d since the start.", a.To, a.Records)
	case a.State == "behind":
		return state{"warn", "Audit", fmt.Sprintf("%d files wait for upload to %s. Decisions continue, and no "+
			"record is lost so far.", a.WaitingFiles, a.To),
			"Check that the location can be reached and has free space.", a.Error}
	}
	return state{"bad", "Audit", fmt.Sprintf("the audit is losing records, %d since the start. Decisions continue.",
		a.Lost),
		"Check that the location and the local disk are writable and have free space. docs/audit.md.", a.Error}
}
