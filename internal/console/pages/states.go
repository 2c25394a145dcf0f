package pages

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"capper/client/api"
	"capper/internal/console/frame"
)

// state is how a part of the service is, and what to do.
type state struct {
	Class  string // good, note, warn or bad
	Part   string
	What   string // a sentence
	Do     string // sentences; "": nothing
	Detail string // the service's own words
}

// Word is the state without its colour.
func (s state) Word() string {
	return map[string]string{"good": "OK", "note": "Note", "warn": "Look at this", "bad": "Trouble"}[s.Class]
}

func good(part, format string, args ...any) state {
	return state{Class: "good", Part: part, What: fmt.Sprintf(format, args...)}
}

// states are how all parts are, as of now; the worst first.
func states(s *api.Status, now time.Time) []state {
	list := []state{ready(s), store(s.Store)}
	list = append(list, storeNotes(s.Store)...)
	list = append(list, segments(s, now))
	list = append(list, configuration(s.Config, now)...)
	list = append(list, audit(s.Audit, now))
	rank := map[string]int{"bad": 0, "warn": 1, "note": 2, "good": 3}
	slices.SortStableFunc(list, func(a, b state) int { return rank[a.Class] - rank[b.Class] })
	return list
}

func ready(s *api.Status) state {
	if s.Ready {
		return good("Service", "it takes calls.")
	}
	return state{"bad", "Service", "it asks for no calls now: load balancers send none.",
		"The parts below say why; while it starts or stops this passes by itself.", ""}
}

// store says how the store is.
func store(s api.StoreStatus) state {
	kind := "Redis"
	if s.Kind == "embedded" {
		kind = "the embedded store in " + s.Path
	}
	switch s.State {
	case "ok":
		return good("Store", "%s answers: sends are decided and recorded.", kind)
	case "down":
		return state{"bad", "Store", kind + " does not answer: nobody is allowed, users come back as unavailable.",
			"See to it that it runs and has room on its disk; campaigns that ask again later continue where " +
				"they were. " + chapter(s) + ".", s.Error}
	}
	return state{"warn", "Store", kind + " answers in part: some users may come back as unavailable.",
		"Ask again for those later, which counts nobody twice. " + chapter(s) + ".", s.Error}
}

// chapter is where the documents tell of the store.
func chapter(s api.StoreStatus) string {
	if s.Kind == "embedded" {
		return "docs/operating.md, “The embedded store”"
	}
	return "docs/redis.md"
}

// createdEmpty begins the store's words on a first start, where nothing is wrong.
const createdEmpty = "the store was created empty at this start"

// storeNotes are what its start tolerated, and how the other instances differ.
func storeNotes(s api.StoreStatus) (list []state) {
	for _, warning := range s.Warnings {
		if strings.HasPrefix(warning, createdEmpty) {
			list = append(list, state{"note", "Store", "it was created empty at this start, as on every first one: " +
				"sends before it are not known.",
				"If sends were recorded before, this is another place than theirs: see that store.embedded.path " +
					"names the one that was used.", ""})
			continue
		}
		list = append(list, state{"warn", "Store", "its start noted something that you should know.",
			"If it is not meant, change what it names and start again.", warning})
	}
	if s.Fleet == nil {
		return list
	}
	for _, what := range slices.Sorted(maps.Keys(s.Fleet.Differing)) {
		list = append(list, state{"warn", "Instances", fmt.Sprintf("%d of the %d others differ from this one in "+
			"their %s.", s.Fleet.Differing[what], s.Fleet.Instances-1, what),
			"While a change is rolled out this passes; else give all of them the same configuration. docs/redis.md, " +
				"“Instances of one fleet”.", ""})
	}
	return list
}

// segments says how old what is known of users is.
func segments(s *api.Status, now time.Time) state {
	at := s.Segments
	if len(at.Missing) > 0 {
		return state{"bad", "Segments", "the generation in use lacks sets that the configuration needs: " +
			strings.Join(at.Missing, ", ") + ".",
			"Publish them with segmentbuild, or take them out of the configuration (of suppress with " +
				"no_longer_suppressed). docs/operating.md, “Sets that must be there”.", ""}
	}
	if old := tooOld(at.Guarded); len(old) > 0 {
		return state{"bad", "Segments", "these suppressed sets are older than their max_age, and sends that they " +
			"concern are answered unavailable: " + strings.Join(old, ", ") + ".",
			"See why no build confirms them. docs/operating.md, “Lists that are too old”.", ""}
	}
	if at.Refused != nil {
		return state{"bad", "Segments", fmt.Sprintf("generation %s is published and refused; generation %s stays "+
			"in use.", at.Refused.Generation, at.Generation),
			"Find out whether the change is meant. docs/operating.md, “A generation is refused”.", at.Refused.Error}
	}
	since := "it is not known since when"
	if !at.CreatedAt.IsZero() {
		since = "made " + frame.Relative(now, at.CreatedAt)
	}
	switch {
	case at.Error != "":
		return state{"warn", "Segments", fmt.Sprintf("the last refresh failed; generation %s (%s) stays in use.",
			at.Generation, since),
			"See to it that the source can be reached and that what was published there is whole: segmentbuild " +
				"inspect says so. docs/operating.md, “Segments from S3”.", at.Error}
	case at.Origin == "cache":
		return state{"warn", "Segments", fmt.Sprintf("generation %s (%s) comes from the local cache, as the source "+
			"could not be asked.", at.Generation, since),
			"See to it that the source can be reached.", ""}
	}
	return good("Segments", "generation %s is in use, %s.", at.Generation, since)
}

// tooOld names the sets that are older than their max_age.
func tooOld(list []api.GuardedSet) (names []string) {
	for i := range list {
		if list[i].TooOld {
			names = append(names, list[i].Name)
		}
	}
	return names
}

func configuration(c api.ConfigStatus, now time.Time) []state {
	list := []state{good("Configuration", "version %s is in force, loaded %s.", c.Version,
		frame.Relative(now, c.LoadedAt))}
	if c.Error != "" {
		list[0] = state{"warn", "Configuration", fmt.Sprintf("the file was changed and the change was refused %s; "+
			"version %s stays in force.", frame.Relative(now, c.ErrorAt), c.Version),
			"Correct what is named below: capper check-config says the same before a change.", c.Error}
	}
	for _, problem := range c.Problems {
		list = append(list, state{"warn", "Configuration", "it says something that is allowed and hardly meant.",
			"Change it, if it is not what you want.", problem})
	}
	return list
}

func audit(a *api.AuditStatus, now time.Time) state {
	switch {
	case a == nil:
		return good("Audit", "it is off: why somebody was not sent to last week cannot be looked up. The key audit "+
			"turns it on.")
	case a.State == "ok":
		return good("Audit", "every decision is recorded to %s, %d since the start.", a.To, a.Records)
	case a.State == "behind":
		return state{"warn", "Audit", fmt.Sprintf("%d files wait to be written to %s. Decisions go on and nothing "+
			"is lost so far.", a.WaitingFiles, a.To),
			"See to it that the place can be reached and has room.", a.Error}
	}
	return state{"bad", "Audit", fmt.Sprintf("records are being lost, %d since the start. Decisions go on.", a.Lost),
		"See to it that the place and the local disk can be written and have room. docs/audit.md.", a.Error}
}
