package pressure

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"capper/client/api"
	"capper/internal/audit"
	"capper/internal/bitmap"
	"capper/internal/capping"
)

// The type output collects the results of all passes over the audit records. Each pass counts some of the users.
type output struct {
	*Config
	names     []string // segment names by code; index 0 is ""
	records   int64
	sequences audit.Sequences
	begins    capping.Instant
	spreads   map[rowKey][]spread
	limits    [][]int64 // by segment code and limit; the last element counts any limit
	campaigns map[campaignKey]*campaign
	known     map[string]*capping.Policy
	blocks    []bitmap.Encoded
	images    []capping.UserID
	more      bool
}

// rowKey identifies a row in the table of people by number of messages. A row is for a segment, a channel or a
// namespace.
type rowKey struct {
	name                 string // name of the namespace
	channel              capping.Channel
	code                 int
	bySegment, byChannel bool
}

// A spread contains two histograms of people by number of messages: for the users in any segment, and for the users in
// no segment.
type spread struct{ in, out histogram }

// A histogram holds the number of users for each number of messages, and the total number of their messages.
type histogram struct {
	users    [api.PressureMost + 1]int64
	messages int64
}

func (h *histogram) add(c *bitmap.Counts, in *bitmap.Words) {
	c.Histogram(in, h.users[:])
	h.messages += c.Sum(in)
}

func (h *histogram) join(other *histogram) {
	for n, users := range other.users {
		h.users[n] += users
	}
	h.messages += other.messages
}

type campaignKey struct {
	capping.Message
	channel capping.Channel
}

// The struct campaign is the row of the output for a message on a channel, with numbers for each week.
type campaign struct {
	campaignKey
	sends, released, held []int64
	users                 *roaring.Bitmap // users who were held back; nil: no users
	takers                map[*campaign]int64
}

func newOutput(cfg *Config) *output {
	o := &output{Config: cfg, names: cfg.names(), spreads: map[rowKey][]spread{},
		campaigns: map[campaignKey]*campaign{}}
	for _, name := range o.names {
		o.limits = append(o.limits, make([]int64, len(cfg.Policy.Limits(name))+1))
	}
	return o
}

func (o *output) spread(key rowKey, week int) *spread {
	if o.spreads[key] == nil {
		o.spreads[key] = make([]spread, o.Weeks)
	}
	return &o.spreads[key][week]
}

func (o *output) atLimit(code, limit, users int) { o.limits[code][limit] += int64(users) }

// The method campaign returns the row of the output for a message on a channel. If the output already has mostCampaigns
// rows, all further messages share one row.
func (o *output) campaign(m capping.Message, channel capping.Channel) *campaign {
	key := campaignKey{m, channel}
	if c := o.campaigns[key]; c != nil {
		return c
	}
	if len(o.campaigns) >= mostCampaigns {
		if key = (campaignKey{capping.Message{ID: others}, 0}); o.campaigns[key] != nil {
			return o.campaigns[key]
		}
	}
	c := &campaign{campaignKey: key, sends: make([]int64, o.Weeks), released: make([]int64, o.Weeks),
		held: make([]int64, o.Weeks)}
	o.campaigns[key] = c
	return c
}

func (c *campaign) takenBy(by *campaign, users int64) {
	if c.takers == nil {
		c.takers = map[*campaign]int64{}
	}
	c.takers[by] += users
}

// The method "policies" stores the policies of the counted calls, because channelName needs the names of channels.
func (o *output) policies(known map[string]*capping.Policy) { o.known = known }

// channelName returns the name of a channel in the policy in force, or else in an earlier policy.
func (o *output) channelName(c capping.Channel) string {
	if c == 0 {
		return ""
	}
	versions := slices.Sorted(maps.Keys(o.known))
	for _, policy := range append([]*capping.Policy{o.Policy}, policiesOf(o.known, versions)...) {
		for name, number := range policy.Channels {
			if number == c {
				return name
			}
		}
	}
	return o.Policy.ChannelName(c)
}

func policiesOf(known map[string]*capping.Policy, versions []string) (list []*capping.Policy) {
	for _, version := range versions {
		list = append(list, known[version])
	}
	return list
}

// The method result returns the counts of messages per person in the form for the caller.
func (o *output) result() *Result {
	p := &api.Pressure{ConfigVersion: o.Policy.Version, Records: o.records, Gaps: o.sequences.Gaps(),
		People: o.people(), AtLimits: o.atLimits()}
	if o.records > 0 {
		p.AuditBegins = o.begins.Time()
	}
	if o.Segments != nil {
		p.Generation = o.Segments.Generation()
	}
	if o.Channel != nil {
		p.Channel = o.channelName(*o.Channel)
	}
	if o.Namespace != nil {
		p.Namespace = *o.Namespace
	}
	for i := range o.Weeks {
		to := o.Until.Time().Add(-time.Duration(i) * Week)
		p.Weeks = append(p.Weeks, api.PressureWeek{From: to.Add(-Week), To: to})
	}
	p.Campaigns, p.HeldBack = o.rows(), o.held()
	p.More = o.more
	r := &Result{Pressure: p, Images: o.images}
	if o.Config.AtLimit != nil && o.images == nil {
		r.Users = bitmap.Join(o.blocks)
	}
	slices.Sort(r.Images)
	return r
}

// The method people returns the rows of the table of people by number of messages.
func (o *output) people() []api.PressurePeople {
	all := make([]spread, o.Weeks)
	var rows []api.PressurePeople
	for code := range o.names {
		spreads := o.weeks(rowKey{code: code, bySegment: true})
		for week := range spreads {
			to := &all[week].in
			if code == 0 {
				to = &all[week].out
			}
			to.join(&spreads[week].in)
		}
		if code > 0 {
			rows = append(rows, o.row(api.PressureSegment, o.names[code], o.size(o.names[code]), spreads))
		}
	}
	none := o.weeks(rowKey{code: 0, bySegment: true})
	rows = append(rows, o.row(api.PressureSegment, api.NoSegment, nil, none))
	rows = append([]api.PressurePeople{o.row(api.PressureAll, "", o.sizeOfAll(), all)}, rows...)
	for _, key := range o.keys() {
		by, name := api.PressureNamespace, key.name
		if key.byChannel {
			by, name = api.PressureChannel, cmp.Or(key.name, o.channelName(key.channel))
		}
		rows = append(rows, o.row(by, name, o.sizeOfAll(), o.spreads[key]))
	}
	return rows
}

// The method "keys" returns the sorted keys of the table rows for channels, and then the sorted keys of the table rows
// for namespaces.
func (o *output) keys() (keys []rowKey) {
	for key := range o.spreads {
		if !key.bySegment {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b rowKey) int {
		if a.byChannel != b.byChannel {
			if a.byChannel {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(a.channel, b.channel), cmp.Compare(a.name, b.name))
	})
	return keys
}

func (o *output) weeks(key rowKey) []spread {
	o.spread(key, 0)
	return o.spreads[key]
}

func (o *output) size(segment string) *int64 {
	if size, known := o.Sizes[segment]; known {
		return &size
	}
	return nil
}

func (o *output) sizeOfAll() *int64 {
	if o.Segments == nil {
		return nil
	}
	all := int64(0)
	for _, name := range o.names[1:] {
		all += o.Sizes[name]
	}
	return &all
}

// The method row returns a row of the table of people by number of messages. The row contains, for each number of
// messages, the number of users with exactly this number of messages.
func (o *output) row(by, name string, size *int64, spreads []spread) api.PressurePeople {
	row := api.PressurePeople{By: by, Name: name, Size: size}
	for i := range spreads {
		in, out := &spreads[i].in, &spreads[i].out
		w := api.PressureSpread{Messages: in.messages + out.messages, Got: make([]int64, api.PressureMost)}
		got := int64(0)
		for n := 1; n <= api.PressureMost; n++ {
			w.Got[n-1] = in.users[n] + out.users[n]
			got += in.users[n]
		}
		if size != nil {
			none := *size - got
			w.None = &none
		}
		row.Weeks = append(row.Weeks, w)
	}
	return row
}

// The method atLimits returns, for each segment and limit, the number of users who have reached the limit.
func (o *output) atLimits() []api.PressureAtLimit {
	list := []api.PressureAtLimit{}
	for i := range o.names {
		code := (i + 1) % len(o.names) // users in no segment come last
		row := api.PressureAtLimit{Segment: cmp.Or(o.names[code], api.NoSegment), Limits: []api.PressureLimitUsers{}}
		if code > 0 {
			row.Size = o.size(o.names[code])
		}
		limits := o.Policy.Limits(o.names[code])
		n := 0
		for k := range limits {
			l := &limits[k]
			if l.Shadow || l.Max == 0 {
				continue
			}
			u := api.PressureLimitUsers{Name: l.Name, Max: l.Max, Window: l.Span(), Users: o.limits[code][n]}
			for _, c := range l.Channels.Channels() {
				u.Channels = append(u.Channels, o.channelName(c))
			}
			row.Limits = append(row.Limits, u)
			n++
		}
		row.Any = o.limits[code][n]
		list = append(list, row)
	}
	return list
}

func (o *output) nameOf(c *campaign) api.PressureMessage {
	return api.PressureMessage{MessageID: c.ID, Namespace: c.Namespace, Channel: o.channelName(c.channel)}
}

func sum(list []int64) (total int64) {
	for _, n := range list {
		total += n
	}
	return total
}

// The method "sorted" returns the campaigns for which the function "by" returns more than 0, the highest value first.
// The method "sorted" returns at most the configured number of campaigns.
func (o *output) sorted(by func(*campaign) int64) (list []*campaign) {
	for _, c := range o.campaigns {
		if by(c) > 0 {
			list = append(list, c)
		}
	}
	slices.SortFunc(list, func(a, b *campaign) int { return cmp.Or(cmp.Compare(by(b), by(a)), compare(a, b)) })
	if len(list) > o.Most {
		o.more = true
		list = list[:o.Most]
	}
	return list
}

func compare(a, b *campaign) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.ID, b.ID), cmp.Compare(a.channel, b.channel))
}

// The method "rows" returns the rows for the campaigns with the most messages.
func (o *output) rows() []api.PressureCampaign {
	list := []api.PressureCampaign{}
	for _, c := range o.sorted(func(c *campaign) int64 { return sum(c.sends) }) {
		list = append(list, api.PressureCampaign{PressureMessage: o.nameOf(c), Messages: c.sends, Released: c.released,
			HeldBack: c.held})
	}
	return list
}

// The method "held" returns the campaigns that limits denied to the most users.
func (o *output) held() []api.PressureHeld {
	list := []api.PressureHeld{}
	for _, c := range o.sorted(func(c *campaign) int64 { return sum(c.held) }) {
		h := api.PressureHeld{PressureMessage: o.nameOf(c), Users: sum(c.held), TakenBy: []api.PressureTaken{}}
		takers := slices.SortedFunc(maps.Keys(c.takers), func(a, b *campaign) int {
			return cmp.Or(cmp.Compare(c.takers[b], c.takers[a]), compare(a, b))
		})
		for _, taker := range takers[:min(len(takers), o.Most)] {
			h.TakenBy = append(h.TakenBy, api.PressureTaken{PressureMessage: o.nameOf(taker), Users: c.takers[taker]})
		}
		list = append(list, h)
	}
	return list
}
