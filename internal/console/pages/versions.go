package pages

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"capper/client/api"
	"capper/internal/console/frame"
	"capper/internal/console/recent"
)

// version is a policy that was in force, and what differed from the one before.
type version struct {
	Version string
	Since   time.Time
	First   bool     // it was in force when this instance started
	Added   []string // sentences
	Removed []string
}

// versions are the policies that were in force, the newest first.
func versions(list []recent.Version) []version {
	out := make([]version, len(list))
	for i, v := range list {
		out[i] = version{Version: v.Policy.Version, Since: v.Since, First: i == len(list)-1}
		if !out[i].First {
			now, before := sentences(v.Policy), sentences(list[i+1].Policy)
			out[i].Added, out[i].Removed = without(now, before), without(before, now)
		}
	}
	return out
}

// sentences are all that a policy says, each by itself.
func sentences(p *api.Policy) (said []string) {
	said = append(said, withheld(p)...)
	add := func(who string, limits []api.Limit) {
		if len(limits) == 0 {
			said = append(said, who+": no limit.")
		}
		for _, l := range limits {
			text := fmt.Sprintf("%s, %s: %s", who, l.Name, Sentence(l))
			if l.Shadow {
				text += ", in the shadow"
			}
			said = append(said, text+".")
		}
	}
	for _, segment := range slices.Sorted(maps.Keys(p.Segments)) {
		add(segment, p.Segments[segment])
	}
	add("everybody else", p.Default)
	for _, name := range slices.Sorted(maps.Keys(p.Channels)) {
		said = append(said, fmt.Sprintf("Channel %s is number %d.", name, p.Channels[name]))
	}
	if p.Timezone != "" {
		said = append(said, "Users whose time zone is not known are taken to live in "+p.Timezone+".")
	}
	return said
}

func without(list, others []string) (left []string) {
	for _, text := range list {
		if !slices.Contains(others, text) {
			left = append(left, text)
		}
	}
	return left
}

// shadowTable is the limits in the shadow, and whom they would have held back.
func shadowTable(p *api.Policy, hour, day *recent.Window) *frame.Table {
	t := &frame.Table{
		Name: "shadow", Caption: "Limits in the shadow: what they would do",
		Columns: []frame.Column{
			{Title: "Limit"}, {Title: "Of"}, {Title: "What it says"},
			{Title: "Last hour", Means: "users allowed whom it would have held back, all segments", Number: true},
			{Title: "Last day", Means: "users allowed whom it would have held back, all segments", Number: true},
			{Title: "Of the day", Means: "percent of all allowed", Number: true},
		},
		Empty: "No limit is in the shadow. With shadow: true a stricter limit is tried on live traffic: it counts and holds nobody back.",
	}
	allowed := day.Sum(recent.Name{Kind: recent.Allowed})
	add := func(segment string, limits []api.Limit) {
		for _, l := range limits {
			if !l.Shadow {
				continue
			}
			name := recent.Name{Kind: recent.Shadow, Of: l.Name}
			share := frame.Text("")
			if allowed > 0 {
				share = frame.Number(100*day.Sum(name)/allowed, 1)
			}
			t.Rows = append(t.Rows, []frame.Cell{
				frame.Text(l.Name), frame.Text(segment), frame.Text(Sentence(l)), frame.Count(int64(hour.Sum(name))), frame.Count(int64(day.Sum(name))), share,
			})
		}
	}
	for _, segment := range slices.Sorted(maps.Keys(p.Segments)) {
		add(segment, p.Segments[segment])
	}
	add("everybody else", p.Default)
	return t
}
