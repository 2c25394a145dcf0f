package config

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"capper/internal/capping"
	"capper/internal/segments"
	"capper/internal/share"
	"capper/internal/yamltree"
)

// These constants are the names that API responses use for denials whose reason is not a limit. No limit may have the
// name "suppressed", "holdout" or "quiet", because responses and metrics use these names for other reasons for a
// denial.
const (
	suppressedName = "suppressed"
	holdoutName    = "holdout"
	quietName      = "quiet"
)

// allWord is the value in a configuration file that means "all sends, with and without a channel".
const allWord = "all"

// The method suppress reads the key "suppress": the sets of users who must not receive messages, in the order of the
// file. If a user is in several suppressed sets, responses name the set that comes first in the file.
func (r *reader) suppress(v yamltree.Value) {
	if v.IsList() {
		v.Fault("must be a mapping with the names of sets as keys, such as {opted-out: all}, got a list")
		return
	}
	v.Pairs(func(key string, at, val yamltree.Value) {
		setName(at, key)
		r.Policy.Suppress = append(r.Policy.Suppress, r.suppression(key, val))
	})
	if n := len(r.Policy.Suppress); n > capping.MaxSuppress {
		v.Fault("must be at most %d sets, got %d", capping.MaxSuppress, n)
	}
}

// The method suppression reads which sends to the users of a set are suppressed (denied). The value of a suppressed set
// is the word "all", a list of channels, or a mapping with the keys "channels", "even_exempt", "may_lose" and
// "max_age".
func (r *reader) suppression(set string, v yamltree.Value) capping.Suppression {
	s := capping.Suppression{Set: set, MayLose: segments.DefaultMayLose}
	word, isWord := v.Word()
	switch {
	case isWord && word == allWord:
	case v.IsList():
		s.Channels = r.suppressedChannels(v)
	case v.IsMapping():
		given := v.Object(map[string]yamltree.Field{
			"channels":    func(v yamltree.Value) { s.Channels = r.suppressedChannels(v) },
			"even_exempt": yamltree.Bool(&s.EvenExempt),
			"may_lose":    mayLose(&s.MayLose),
			"max_age":     duration(&s.MaxAge, minAge, maxWindow),
		})
		if len(given) == 0 {
			v.Fault("must name the sends to suppress: all, a list of channels, or a mapping of channels, " +
				"even_exempt, may_lose and max_age")
		}
	default:
		v.Fault("must be all, a list of channels, or a mapping of channels, even_exempt, may_lose and max_age, got %s",
			v.Describe())
	}
	return s
}

// minAge is the smallest permitted value of the key "max_age" of a suppressed set.
const minAge = time.Second

// quietMayLose is the default percentage of users that a set with quiet hours may lose from one segments generation
// (published version) to the next. A set with quiet hours normally loses some users, because people move to other time
// zones.
const quietMayLose = 5

// mayLose returns a reader of the key "may_lose": the percentage of users that a set may lose between two segments
// generations, such as 0.1% or 0.
func mayLose(to *float64) yamltree.Field {
	return func(v yamltree.Value) {
		text, ok := v.Scalar()
		if !ok {
			return
		}
		digits := strings.TrimSuffix(text, "%")
		n, err := strconv.ParseFloat(digits, 64)
		if err != nil || !plainNumber.MatchString(digits) || n < 0 || n > 100 {
			v.Fault("must be a percentage from 0 to 100%% such as 0.1%%, got %s", v.Describe())
			return
		}
		*to = n
	}
}

// The function Guarded returns the maximum percentage of users that each guarded set of the policy p may lose from one
// segments generation (published version) to the next. The service rejects a new generation in which a guarded set has
// lost more than its maximum percentage.
func Guarded(p *capping.Policy) segments.Guarded {
	g := segments.Guarded{MayLose: map[string]float64{}, Zones: p.UsesZones()}
	guard := func(set string, mayLose float64) {
		if tighter, ok := g.MayLose[set]; !ok || mayLose < tighter {
			g.MayLose[set] = mayLose
		}
	}
	for i := range p.Suppress {
		guard(p.Suppress[i].Set, p.Suppress[i].MayLose)
	}
	for i := range p.Quiet {
		for _, set := range p.Quiet[i].Sets {
			guard(set, p.Quiet[i].MayLose)
		}
	}
	return g
}

// LooseLists returns warnings about suppressed sets that are empty in a segments generation (published version).
// LooseLists also warns of suppressed sets that may lose users in a later build.
func LooseLists(p *capping.Policy, m *segments.Manifest) (warnings []string) {
	for i := range p.Suppress {
		name := p.Suppress[i].Set
		for k := range m.Sets {
			set := &m.Sets[k]
			if set.Name != name {
				continue
			}
			if set.Cardinality == 0 {
				warnings = append(warnings, fmt.Sprintf("suppress.%s: the set is empty in generation %s, so it "+
					"suppresses nobody", name, m.Generation))
			}
			if !set.OnlyGrows {
				warnings = append(warnings, fmt.Sprintf("suppress.%s: users may leave the set in each build: "+
					"declare the set only_grows in the build", name))
			}
		}
	}
	return warnings
}

// suppressedChannels reads the channels on which a set is suppressed: the word "all" or a list of channels.
func (r *reader) suppressedChannels(v yamltree.Value) capping.ChannelSet {
	if word, ok := v.Word(); ok {
		if word != allWord {
			v.Fault("must be all or a list of channels, got %q", word)
		}
		return capping.ChannelSet{}
	}
	return r.someChannels(v)
}

// someChannels reads a list of channels on which a rule denies sends. If the list contains all channels, someChannels
// warns that the rule still allows sends without a channel.
func (r *reader) someChannels(v yamltree.Value) capping.ChannelSet {
	channels := r.channelSet(v)
	if n := len(channels.Channels()); n > 1 && n == len(r.Policy.Channels) {
		r.Warnings = append(r.Warnings, fmt.Sprintf("%s: names every channel, which is not all: sends without a "+
			"channel, and channels that are added later, are not among them", v.Path()))
	}
	return channels
}

// setName records an error if the name is not valid for a set.
func setName(at yamltree.Value, name string) {
	if err := segments.CheckSetName(name); err != nil {
		fault := strings.TrimPrefix(err.Error(), fmt.Sprintf("set name %q", name))
		at.Fault("%s, got %q", strings.TrimLeft(fault, ": "), name)
	}
}

func (r *reader) holdout(v yamltree.Value) {
	h := &capping.Holdout{}
	percent, salt := 0.0, ""
	before := len(v.Faults())
	given := v.Object(map[string]yamltree.Field{
		"percent":  r.percent(&percent),
		"salt":     salted(&salt),
		"channels": func(v yamltree.Value) { h.Channels = r.someChannels(v) },
	})
	for _, key := range []string{"percent", "salt"} {
		if v.IsMapping() && !given[key] {
			v.FaultOf(key, "is required")
		}
	}
	if len(v.Faults()) == before {
		h.Share, _ = share.New(share.Holdout, percent, salt) // New cannot fail: both arguments were checked
	}
	r.Policy.Holdout = h
}

func (r *reader) percent(to *float64) yamltree.Field {
	return func(v yamltree.Value) {
		n, ok := number(v)
		if !ok {
			return
		}
		if _, err := share.New(share.Holdout, n, "-"); err != nil {
			v.Fault("%s", strings.TrimPrefix(err.Error(), "percent: "))
		}
		if n >= 50 {
			r.Warnings = append(r.Warnings, fmt.Sprintf("%s: %v %% of all users get nothing", v.Path(), n))
		}
		*to = n
	}
}

func salted(to *string) yamltree.Field {
	return func(v yamltree.Value) {
		yamltree.Text(to)(v)
		if _, err := share.New(share.Holdout, 100, *to); err != nil && *to != "" {
			v.Fault("%s", strings.TrimPrefix(err.Error(), "salt: "))
		}
	}
}

var plainNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?$`)

// The function number reads a configured number in plain digits, with or without a fraction.
func number(v yamltree.Value) (n float64, ok bool) {
	_, isText := v.Word()
	n, err := strconv.ParseFloat(v.Token(), 64)
	if isText || err != nil || !plainNumber.MatchString(v.Token()) {
		v.Fault("must be a number such as 5 or 0.5, got %s", v.Describe())
		return 0, false
	}
	return n, true
}
