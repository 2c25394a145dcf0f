package console

import (
	"cmp"

	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"capper/client"
	"capper/client/api"
	"capper/internal/console/frame"
)

const (
	segmentsAt  = "segments"
	changesAt   = "segments/changes"
	segmentsNav = "Segments"
)

// segmentsPage returns the console page about segments, sets and their published generations.
func segmentsPage() frame.Page {
	return frame.Page{Path: segmentsAt, Nav: segmentsNav, Live: true, Template: "segments.html", Files: files,
		Show: showSegments}
}

// toolWords returns a text that names the program that built a segments generation (published version). The argument
// "version" is from the manifest of the segments generation, and usually begins with the name of the program.
func toolWords(version string) string {
	switch {
	case version == "":
		return "segmentbuild of an unknown version"
	case strings.HasPrefix(version, "segmentbuild"):
		return version
	}
	return "segmentbuild " + version
}

// segmentsView is the data for the template of the page about segments.
type segmentsView struct {
	Status  *api.Status
	InUse   *api.GenerationInfo // nil: the list of generations does not contain the generation in use
	Listed  []api.GenerationInfo
	Unknown string // reason why the generations are unknown
}

// The method Made returns a text that names the program that built the segments generation (published version) in use.
// If the list of segments generations (published versions) does not contain the generation in use, Made returns "".
func (o *segmentsView) Made() string {
	if o.InUse == nil {
		return ""
	}
	return toolWords(o.InUse.ToolVersion)
}

// Age returns a text about the age of the segments generation (published version) in use, or "" if the age is unknown.
func (o *segmentsView) Age() string {
	if o.Status.GenerationAgeSeconds == nil {
		return ""
	}
	return frame.Span(time.Duration(*o.Status.GenerationAgeSeconds * float64(time.Second)))
}

// The method Cached reports whether the service loaded the segments generation (published version) in use from its
// local cache.
func (o *segmentsView) Cached() bool { return o.Status.Segments.Origin == "cache" }

func showSegments(v *frame.Visit) (*frame.View, error) {
	status, err := v.API.Status(v.Context())
	if err != nil {
		return nil, err
	}
	policy, err := v.API.Limits(v.Context())
	if err != nil {
		return nil, err
	}
	sets, err := v.API.Sets(v.Context())
	if err != nil {
		return nil, err
	}
	data := &segmentsView{Status: status}
	list, err := v.API.Generations(v.Context())
	switch {
	case client.HasCode(err, client.CodeUnavailable):
		data.Unknown = "The location of the segments could not be read now, so its generations are not listed. The " +
			"segments in use stay in use; the Overview shows the state of the location."
		list = &api.Generations{}
	case err != nil:
		return nil, err
	}
	data.Listed = list.Generations
	if i := slices.IndexFunc(data.Listed,
		func(g api.GenerationInfo) bool { return g.Generation == status.Generation }); i >= 0 {
		data.InUse = &data.Listed[i]
	}
	history := historyTable(list, status.Generation)
	if data.Unknown != "" {
		history.Empty = data.Unknown
	}
	return &frame.View{
		Title: "Segments", Question: "How many users are in each segment and set, since when, and what was " +
			"published before?",
		Data:   data,
		Tables: []*frame.Table{segmentsTable(status, policy), setsTable(inOrder(sets.Sets, status), policy), history},
		Calls:  []string{"GET /v1/segments", "GET /v1/sets", "GET /v1/generations", "GET /v1/status"},
	}, nil
}

func segmentsTable(s *api.Status, p *api.Policy) *frame.Table {
	t := &frame.Table{
		Name: "segments", Caption: "Segments, in order of precedence: a user is in at most one",
		Columns: []frame.Column{{Title: "Segment"}, {Title: "Users", Number: true}, {Title: "Of all in segments",
			Means: "%", Number: true}, {Title: "Limits"}},
		Empty: "No segments are in use. Publish a generation with segmentbuild build; the service loads it within " +
			"segments.refresh.",
	}
	var all uint64
	for _, one := range s.Segments.Segments {
		all += one.Users
	}
	for _, one := range s.Segments.Segments {
		limits := "the default limits: the segment has none"
		if own, ok := p.Segments[one.Name]; ok {
			limits = namesOf(own)
		}
		part := frame.Text("")
		if all > 0 {
			part = frame.Number(100*float64(one.Users)/float64(all), 1)
		}
		t.Rows = append(t.Rows, []frame.Cell{frame.Text(one.Name), frame.Count(one.Users), part, frame.Text(limits)})
	}
	return t
}

func namesOf(limits []api.Limit) string {
	if len(limits) == 0 {
		return "none: uncapped"
	}
	names := make([]string, len(limits))
	for i, l := range limits {
		names[i] = l.Name
	}
	return frame.List(names)
}

// inOrder sorts the sets in the order in which the segments generation (published version) in use contains them. Sets
// that exist only because of API calls, without a build, come last.
func inOrder(sets []api.SetInfo, s *api.Status) []api.SetInfo {
	place := func(set api.SetInfo) int {
		at := slices.IndexFunc(s.Segments.Sets, func(one api.SegmentSize) bool { return one.Name == set.Name })
		if at < 0 {
			return len(s.Segments.Sets)
		}
		return at
	}
	slices.SortStableFunc(sets, func(a, b api.SetInfo) int { return cmp.Compare(place(a), place(b)) })
	return sets
}

func setsTable(sets []api.SetInfo, p *api.Policy) *frame.Table {
	t := &frame.Table{
		Name: "sets", Caption: "Sets, which may overlap",
		Columns: []frame.Column{{Title: "Set"}, {Title: "Users", Means: "in the build", Number: true},
			{Title: "Added", Means: "users, by calls since", Number: true},
			{Title: "Removed", Means: "users, by calls since", Number: true}, {Title: "Last call"},
			{Title: "Used by the limits for"}},
		Empty: "The generation has no sets. Publish sets with segmentbuild build --set NAME=FILE.",
	}
	for _, one := range sets {
		row := []frame.Cell{frame.Text(one.Name), frame.Text("no build"), frame.Text(""), frame.Text(""),
			frame.Text(""),
			frame.Text(frame.List(usesOf(one.Name, p)))}
		if one.Users != nil {
			row[1] = frame.Count(*one.Users)
		}
		if l := one.Live; l != nil {
			row[2], row[3] = frame.Count(l.Additions), frame.Count(l.Removals)
			if l.Newest != nil {
				row[4] = frame.Time(*l.Newest)
			}
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// usesOf returns the uses of a set in the policy, such as suppression or quiet hours, as words.
func usesOf(set string, p *api.Policy) (uses []string) {
	for _, s := range p.Suppress {
		if s.Set == set {
			uses = append(uses, "suppression")
		}
	}
	if slices.ContainsFunc(p.Quiet, func(q api.Quiet) bool { return slices.Contains(q.Sets, set) }) {
		uses = append(uses, "quiet hours")
	}
	if len(set) > 3 && set[:3] == "tz/" && p.Timezone != "" {
		uses = append(uses, "the time zone of its users")
	}
	return uses
}

func historyTable(list *api.Generations, inUse string) *frame.Table {
	t := &frame.Table{
		Name: "generations", Caption: "Published generations, newest first",
		Columns: []frame.Column{
			{Title: "Generation"}, {Title: "State"}, {Title: "Made"}, {Title: "Made with"},
			{Title: "Users", Means: "in segments", Number: true},
			{Title: "Segments", Number: true}, {Title: "Sets", Number: true},
			{Title: "Reason", Means: "reason for overriding a check"}, {Title: "Changes"},
		},
		Empty: "No generation is published yet. Publish one with segmentbuild build.",
	}
	if list.More {
		t.Caption += ", as many as are listed"
	}
	for i, g := range list.Generations {
		changes := frame.Text("the first one listed")
		if i+1 < len(list.Generations) {
			changes = frame.Link("compared with the previous one",
				changesAddress(list.Generations[i+1].Generation, g.Generation))
		}
		state := stateOf(&g, inUse)
		if g.Fault != "" {
			t.Rows = append(t.Rows, []frame.Cell{frame.Text(g.Generation), frame.Text("cannot be read").With(g.Fault),
				frame.Time(g.StoredAt), frame.Text(""), frame.Text(""), frame.Text(""), frame.Text(""), frame.Text(""),
				changes})
			continue
		}
		t.Rows = append(t.Rows, []frame.Cell{
			frame.Text(g.Generation), frame.Text(state), frame.Time(g.CreatedAt),
			frame.Text(toolWords(g.ToolVersion)), frame.Count(g.Users), frame.Count(g.Segments), frame.Count(g.Sets),
			frame.Text(g.Reason), changes,
		})
	}
	return t
}

// stateOf returns words about the state of a segments generation (published version), such as whether it is in use.
func stateOf(g *api.GenerationInfo, inUse string) string {
	var is []string
	if g.Generation == inUse {
		is = append(is, "in use here")
	}
	if g.Live {
		is = append(is, "live")
	}
	if !g.WithdrawnAt.IsZero() {
		is = append(is, "rolled back")
	}
	if !g.HeldSince.IsZero() {
		is = append(is, "publishing is on hold: "+g.HeldFor)
	}
	if len(is) == 0 {
		return "earlier"
	}
	return frame.List(is)
}

func changesAddress(from, to string) string {
	return "/console/" + changesAt + "?" + url.Values{"from": {from}, "to": {to}}.Encode()
}

// notThere returns the error for a request about a segments generation (published version) that does not exist.
func notThere() error {
	return &frame.Refusal{Status: http.StatusNotFound, What: "One of these generations does not exist or was removed.",
		Do: "Choose two generations from the page Segments."}
}
