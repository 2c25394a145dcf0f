package capping

import (
	"slices"
	"strconv"
	"time"
)

// Policy maps segments to limits. It is immutable once in use.
type Policy struct {
	Version  string             // names the configuration it came from
	Channels map[string]Channel // configured channels by name
	Default  []Limit            // of users in no segment, and of segments without limits of their own
	Segments map[string][]Limit // an empty list: uncapped
}

// Limits is the limits of a segment; of "" they are the default.
func (p *Policy) Limits(segment string) []Limit {
	if limits, ok := p.Segments[segment]; ok && segment != "" {
		return limits
	}
	return p.Default
}

// ChannelName is the name of a channel; of 0 it is "", of one that is no longer
// configured its number.
func (p *Policy) ChannelName(c Channel) string {
	if c == 0 {
		return ""
	}
	for name, number := range p.Channels {
		if number == c {
			return name
		}
	}
	return strconv.Itoa(int(c))
}

// noLimits is the retention of a policy without limits: what remains is that
// a message retried within a day is the same send.
const noLimits = 24 * time.Hour

// Retention is how long an entry can matter: the longest window, longer by widen.
func (p *Policy) Retention(widen time.Duration) time.Duration {
	longest := longestOf(p.Default)
	for _, limits := range p.Segments {
		longest = max(longest, longestOf(limits))
	}
	if longest == 0 {
		longest = noLimits
	}
	return longest + widen
}

func longestOf(limits []Limit) (longest time.Duration) {
	for i := range limits {
		longest = max(longest, limits[i].longest())
	}
	return longest
}

// ruleset is the limits that judge one segment's sends in one call, and the
// rules made of them, index by index.
type ruleset struct {
	limits []*Limit
	rules  []Rule
}

// rulesets resolves the policy for one call: element 0 for users in no
// segment, element i+1 for names[i].
func (p *Policy) rulesets(names []string, channel Channel, now Instant, widen time.Duration) []ruleset {
	sets := make([]ruleset, len(names)+1)
	sets[0] = p.ruleset("", channel, now, widen)
	for i, name := range names {
		sets[i+1] = p.ruleset(name, channel, now, widen)
	}
	return sets
}

func (p *Policy) ruleset(segment string, channel Channel, now Instant, widen time.Duration) (set ruleset) {
	limits := p.Limits(segment)
	for i := range limits {
		if limits[i].AppliesTo(channel) {
			set.limits = append(set.limits, &limits[i])
			set.rules = append(set.rules, limits[i].Rule(now, widen))
		}
	}
	return set
}

// Unmatched compares the policy with the segments of a generation: configured
// lists those with limits that the generation lacks, published those of the
// generation that have no limits of their own and get the default. Both are
// sorted.
func (p *Policy) Unmatched(names []string) (configured, published []string) {
	for segment := range p.Segments {
		if !slices.Contains(names, segment) {
			configured = append(configured, segment)
		}
	}
	for _, name := range names {
		if _, ok := p.Segments[name]; !ok {
			published = append(published, name)
		}
	}
	slices.Sort(configured)
	slices.Sort(published)
	return configured, published
}
