package console

import (
	"cmp"
	"maps"
	"net/url"
	"slices"
	"time"

	"capper/client"
	"capper/client/api"
	"capper/internal/console/frame"
)

// shadowTable returns a table of the shadow limits (limits on trial), with the number of users whom each limit would
// have denied.
func shadowTable(p *api.Policy, hour, day *Window) *frame.Table {
	t := &frame.Table{
		Name: "shadow", Caption: "Shadow limits: what they would do",
		Columns: []frame.Column{
			{Title: "Limit"}, {Title: "Of"}, {Title: "What it says"},
			{Title: "Last hour", Means: "allowed users whom it would have held back, all segments", Number: true},
			{Title: "Last day", Means: "allowed users whom it would have held back, all segments", Number: true},
			{Title: "Of the day", Means: "percent of all allowed", Number: true},
		},
		Empty: "No shadow limits are configured. A limit with shadow: true is tested on live traffic: it counts " +
			"users but holds no user back.",
	}
	allowed := day.Sum(Name{Kind: Allowed})
	add := func(segment string, limits []api.Limit) {
		for _, l := range limits {
			if !l.Shadow {
				continue
			}
			name := Name{Kind: Shadow, Of: l.Name}
			share := frame.Text("")
			if allowed > 0 {
				share = frame.Number(100*day.Sum(name)/allowed, 1)
			}
			t.Rows = append(t.Rows, []frame.Cell{
				frame.Text(l.Name), frame.Text(segment), frame.Text(sentence(l)), frame.Count(int64(hour.Sum(name))),
				frame.Count(int64(day.Sum(name))), share,
			})
		}
	}
	for _, segment := range slices.Sorted(maps.Keys(p.Segments)) {
		add(segment, p.Segments[segment])
	}
	add(api.NoSegment, p.Default)
	return t
}

// shadowDays is the number of past days for which the page lists campaigns with users whom shadow limits (limits on
// trial) would have denied.
const shadowDays = 7

// The function "shadowed" returns a table of recent campaigns, with the number of users whom shadow limits (limits on
// trial) would have denied.
func shadowed(v *frame.Visit) (*frame.Table, error) {
	if storeAway(v) != nil {
		return nil, nil //nolint:nilnil // the rest of the page needs no store
	}
	found, err := v.API.Messages(v.Context(), client.MessagesQuery{Since: v.Now.Add(-shadowDays * 24 * time.Hour),
		Max: 200, Sort: client.SortAsked})
	if client.HasCode(err, client.CodeUnavailable) || client.HasCode(err, client.CodeConflict) {
		return nil, nil //nolint:nilnil // the rest of the page needs no store
	}
	if err != nil {
		return nil, err
	}
	t := &frame.Table{
		Name: "shadow-campaigns", Caption: "Campaigns of the last 7 days, and what shadow limits would have done",
		Columns: []frame.Column{
			{Title: "Campaign"}, {Title: "Channel"}, {Title: "Limit"}, {Title: "Would have held back",
				Means: "users who were allowed", Number: true},
			{Title: "Allowed", Means: "recorded sends, each counted once", Number: true}, {Title: "Last call"},
		},
		Empty: "Shadow limits would not have held back any user in the last 7 days.",
	}
	for _, m := range found.Messages {
		for _, limit := range slices.Sorted(maps.Keys(m.ShadowDenied)) {
			t.Rows = append(t.Rows, []frame.Cell{
				frame.Titled(m.Title, m.MessageID, campaignAt(&m)), frame.Text(cmp.Or(m.Channel, "none")),
				frame.Text(limit), frame.Count(m.ShadowDenied[limit]),
				frame.Count(m.Allowed), frame.Time(m.LastCall),
			})
		}
	}
	return t, nil
}

// campaignAt returns the console address of a campaign.
func campaignAt(m *api.Message) string {
	query := url.Values{"id": {m.MessageID}}
	for name, value := range map[string]string{"namespace": m.Namespace, "channel": m.Channel} {
		if value != "" {
			query.Set(name, value)
		}
	}
	return "/console/campaign?" + query.Encode()
}
