package console

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"capper/client/api"
)

// A version is a policy (limits and other rules), described by its differences from the policy before it.
type version struct {
	Version string
	Since   time.Time
	First   bool     // the policy before this one is unknown
	Added   []string // sentences
	Removed []string
}

// The function "versions" describes each of the given policies by its differences from the policy before, beginning
// with the newest.
func versions(list []Version) []version {
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

// The function "sentences" returns one sentence for each rule of a policy, so that the console can compare two
// policies.
func sentences(p *api.Policy) (said []string) {
	said = append(said, policyWithheld(p)...)
	add := func(who string, limits []api.Limit) {
		if len(limits) == 0 {
			said = append(said, who+": no limit.")
		}
		for _, l := range limits {
			text := fmt.Sprintf("%s, %s: %s", who, l.Name, sentence(l))
			if l.Shadow {
				text += ", in the shadow"
			}
			said = append(said, text+".")
		}
	}
	for _, segment := range slices.Sorted(maps.Keys(p.Segments)) {
		add(segment, p.Segments[segment])
	}
	add(api.NoSegment, p.Default)
	for _, name := range slices.Sorted(maps.Keys(p.Channels)) {
		said = append(said, fmt.Sprintf("Channel %s is number %d.", name, p.Channels[name]))
	}
	if p.Timezone != "" {
		said = append(said, "Users without a known time zone get the time zone "+p.Timezone+".")
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
