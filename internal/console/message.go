package console

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"

	"capper/client"
	"capper/client/api"
	"capper/internal/chart"
	"capper/internal/console/frame"
	"capper/internal/ids"
)

// messagePage returns the console page about one campaign.
func messagePage() frame.Page {
	outlooks := newOutlooks()
	return frame.Page{Path: oneAt, Under: messagesNav, Live: true, Template: "message.html", Files: files,
		Show: func(v *frame.Visit) (*frame.View, error) { return showOne(v, outlooks) }}
}

// messageView is the data for the template of the page about a campaign.
type messageView struct {
	*api.Message
	Planned  bool   // the message has a title but no calls, so the page shows only the title
	Channels []link // links to the channels of the message
	Reach    *reach
	Says     string // summary of the campaign in sentences
	Notes    []string
	Waves    waves
	Shadow   map[string]int64
}

// A step is one stage in the funnel of a campaign: a number of users, such as the requested or the allowed users.
type step struct {
	Name   string
	Users  int64
	Counts string // meaning of the number Users
}

// The type "waves" holds the times at which the denied users of a campaign may receive the campaign's message.
type waves struct {
	*Outlook        // nil: no outlook
	Why      string // reason for the absence of an outlook
	Faults   []string
}

const messageQuestion = "Who received this campaign, who was held back and why, and when may they receive it?"

func showOne(v *frame.Visit, outlooks *outlooks) (*frame.View, error) {
	query := v.URL.Query()
	id, namespace, channel := query.Get("id"), query.Get("namespace"), query.Get("channel")
	if id == "" {
		return nil, &frame.Refusal{Status: http.StatusNotFound, What: "The address names no message.",
			Do: "Choose one in the list of campaigns."}
	}
	found, unread, err := messageOf(v, id, namespace)
	if client.HasCode(err, client.CodeNotFound) {
		return nil, &frame.Refusal{Status: http.StatusNotFound, What: "This message has no counts.",
			Do: "Counts begin with the first call and are kept for at most 31 days. The audit has no record of the " +
				"message either. Check the message id, or open the list of campaigns."}
	}
	if err != nil {
		return nil, err
	}
	m, links := choose(found, channel)
	if m == nil && len(found.Channels) == 0 {
		return plannedView(found), nil
	}
	if m == nil {
		return nil, &frame.Refusal{Status: http.StatusNotFound, What: "This message was not sent on that channel.",
			Do: "Open the campaign without a channel to see all its channels."}
	}
	r := reachOf(m)
	data := &messageView{Message: m, Channels: links, Reach: r, Says: r.says(m), Notes: append(unread,
		lacks(m, found.Faults)...), Shadow: m.ShadowDenied}
	steps := r.funnel()
	view := &frame.View{
		Title:    "Campaign " + cmp.Or(m.Title, id),
		Question: messageQuestion, Data: data,
		Tables: []*frame.Table{funnelTable(steps, r.unit()), messageSends(m), messageLimits(r), messageParts(m, r),
			messageAnswers(m), messageSegments(m, r)},
		Pictures: []*frame.Picture{funnelPicture(steps)},
		Calls: []string{"GET /v1/messages/" + escaped(id, namespace, true), "GET /v1/decisions?" +
			parameters(id, namespace, m.Channel), "POST /v1/forecast"},
	}
	if err := addWaves(v, outlooks, data, view); err != nil {
		return nil, err
	}
	return view, nil
}

// plannedView returns the content of the page about a planned campaign. A planned campaign has a title, but no calls
// yet.
func plannedView(found *api.MessageChannels) *frame.View {
	return &frame.View{
		Title: "Campaign " + cmp.Or(found.Title, found.MessageID), Question: messageQuestion,
		Data: &messageView{Planned: true, Message: &api.Message{MessageID: found.MessageID,
			Namespace: found.Namespace, Title: found.Title}},
		Calls: []string{"GET /v1/messages/" + escaped(found.MessageID, found.Namespace, true)},
	}
}

// messageOf reads from the API the counts of the message, including counts of distinct users. If the service cannot
// read the audit (record of all decisions), the counts do not include distinct users, and the result "unread" contains
// the reason.
func messageOf(v *frame.Visit, id, namespace string) (found *api.MessageChannels, unread []string, err error) {
	found, err = v.API.MessageUsers(v.Context(), id, namespace)
	if !client.HasCode(err, client.CodeUnavailable) && !client.HasCode(err, client.CodeOverloaded) {
		return found, nil, err
	}
	without, again := v.API.Message(v.Context(), id, namespace)
	if again != nil {
		return nil, nil, err
	}
	return without, []string{"The audit could not be read now, so this page counts answers. Load the page again in a " +
		"moment. Error of the service: " + err.Error()}, nil
}

// choose() returns the campaign on the named channel, with links to the other channels of the message. If the channel
// name is empty, choose() returns the campaign on the first channel.
func choose(found *api.MessageChannels, channel string) (m *api.Message, links []link) {
	for i := range found.Channels {
		if c := &found.Channels[i]; m == nil && (channel == "" || c.Channel == channel) {
			m = c
		}
	}
	for i := range found.Channels {
		c := &found.Channels[i]
		next := link{orNone(c.Channel), addressOf(found.MessageID, found.Namespace, c.Channel)}
		if c == m {
			next.To = ""
		}
		links = append(links, next)
	}
	return m, links
}

// messageSends returns a table of the recorded sends of a message. The page shows the recorded sends in addition to the
// counts of responses, because a retry adds a response but no send.
func messageSends(m *api.Message) *frame.Table {
	t := &frame.Table{
		Name: "sends", Folded: true, Caption: "Sends, each exactly once",
		Columns: []frame.Column{{Title: "Sends"}, {Title: "Users", Number: true}, {Title: "What it counts"}},
		Rows: [][]frame.Cell{
			{frame.Text("recorded"), sendsCell(m, m.Allowed), frame.Text("users who were allowed, each counted once")},
			{frame.Text("given back"), sendsCell(m, m.Released), frame.Text("sends given back because they were not " +
				"delivered")},
		},
	}
	if m.AtLeast { // both numbers are lower bounds, so their difference would be wrong
		t.Caption = "Sends: lower bounds, because Redis Cluster moved a slot"
		return t
	}
	t.Rows = append(t.Rows, []frame.Cell{frame.Text("still counted"), frame.Count(m.Allowed - m.Released),
		frame.Text("recorded and not given back")})
	return t
}

// sendsCell returns a table cell with a number of sends, which may be a lower bound.
func sendsCell(m *api.Message, n int64) frame.Cell {
	cell := frame.Count(n)
	if m.AtLeast {
		cell.Text = "at least " + cell.Text
	}
	return cell
}

func funnelTable(steps []step, unit string) *frame.Table {
	t := &frame.Table{
		Name: "funnel", Folded: true, Caption: "From asked to sent",
		Columns: []frame.Column{{Title: "Step"}, {Title: "Users", Means: unit, Number: true},
			{Title: "Of asked", Means: "%", Number: true}, {Title: "What it counts"}},
	}
	for _, s := range steps {
		t.Rows = append(t.Rows, []frame.Cell{frame.Text(s.Name), frame.Count(s.Users), share(s.Users, steps[0].Users),
			frame.Text(s.Counts)})
	}
	return t
}

func funnelPicture(steps []step) *frame.Picture {
	var p chart.Picture
	series := chart.Series{Name: "users"}
	said := "Funnel: "
	for i, s := range steps {
		p.Labels, series.Values = append(p.Labels, s.Name), append(series.Values, float64(s.Users))
		if i > 0 {
			said += ", "
		}
		said += fmt.Sprintf("%s %s", s.Name, frame.Count(s.Users).Text)
	}
	draw := func(narrow bool) func(dark bool) ([]byte, error) {
		return func(dark bool) ([]byte, error) {
			drawn := p
			drawn.Dark, drawn.Slim = dark, narrow
			return chart.Bars(drawn, []chart.Series{series}, false)
		}
	}
	return &frame.Picture{Name: "funnel", Alt: said + ".", Draw: draw(false), Slim: draw(true)}
}

func messageLimits(r *reach) *frame.Table {
	t := &frame.Table{
		Name: "limits", Caption: "Held back, by reason",
		Columns: []frame.Column{{Title: "Held back by"}, {Title: "Users", Means: r.unit(), Number: true},
			{Title: "Of asked", Means: "%", Number: true}},
		Empty: "No user was held back.",
	}
	for _, name := range mostFirst(r.Denied) {
		t.Rows = append(t.Rows, []frame.Cell{frame.Text(name), frame.Count(r.Denied[name]),
			share(r.Denied[name], r.Asked)})
	}
	return t
}

// messageParts returns a table of the users whom sets suppressed, and of the allowed users whom shadow limits (limits
// on trial) would have denied.
func messageParts(m *api.Message, r *reach) *frame.Table {
	t := &frame.Table{
		Name: "parts", Caption: "Suppressed users by set, and users whom shadow limits would have held back",
		Columns: []frame.Column{{Title: "Part of"}, {Title: "By"}, {Title: "Users", Number: true}, {Title: "Counted"}},
	}
	for _, set := range mostFirst(r.Suppressed) {
		t.Rows = append(t.Rows, []frame.Cell{frame.Text(api.LimitSuppressed), frame.Text(set),
			frame.Count(r.Suppressed[set]), frame.Text(r.unit())})
	}
	for _, name := range mostFirst(m.ShadowDenied) {
		t.Rows = append(t.Rows, []frame.Cell{frame.Text("allowed"), frame.Text(name),
			frame.Count(m.ShadowDenied[name]), frame.Text(inAnswers)})
	}
	return t
}

// messageAnswers returns a table that counts the users in the responses to calls for the message. A user counts once
// for each call.
func messageAnswers(m *api.Message) *frame.Table {
	t := &frame.Table{
		Name: "answers", Folded: true, Caption: "Answers of calls",
		Columns: []frame.Column{{Title: "Answer"}, {Title: "Users", Means: inAnswers, Number: true},
			{Title: "Of asked", Means: "%", Number: true}},
	}
	add := func(name string, users int64) {
		t.Rows = append(t.Rows, []frame.Cell{frame.Text(name), frame.Count(users), share(users, m.Asked)})
	}
	add("asked", m.Asked)
	add("allowed", m.Asked-overall(m.Denied)-m.Unavailable)
	add("of them again, by retries", m.Replayed)
	for _, name := range mostFirst(m.Denied) {
		add("denied by "+name, m.Denied[name])
	}
	add("not decided", m.Unavailable)
	return t
}

// messageSegments returns a table of the message's users by segment. The table of users by segment counts each user
// once, if the audit contains the message's users.
func messageSegments(m *api.Message, r *reach) *frame.Table {
	if r.People {
		return messageSegmentUsers(m.Users)
	}
	t := &frame.Table{
		Name: "segments", Caption: "By segment",
		Columns: []frame.Column{
			{Title: "Segment"}, {Title: "Asked", Means: "users, in answers", Number: true},
			{Title: "Allowed", Means: "users, in answers", Number: true},
			{Title: "Held back", Means: "users, in answers", Number: true}, {Title: "Allowed, of asked", Means: "%",
				Number: true},
		},
		Empty: "No results are counted yet: counts are updated once per second.",
	}
	asked := map[string]int64{}
	for name, s := range m.Segments {
		asked[name] = s.Asked
	}
	for _, name := range mostFirst(asked) {
		s := m.Segments[name]
		t.Rows = append(t.Rows, []frame.Cell{frame.Text(name), frame.Count(s.Asked),
			frame.Count(s.Allowed), frame.Count(s.Denied), share(s.Allowed, s.Asked)})
	}
	return t
}

// messageSegmentUsers returns a table with the number of the message's users who are now in each segment. The table
// counts each user once, even if several calls were about the user.
func messageSegmentUsers(u *api.MessageUsers) *frame.Table {
	t := &frame.Table{
		Name: "segments", Caption: "By segment of today: users, each counted once",
		Columns: []frame.Column{{Title: "Segment"}, {Title: "Asked", Number: true}, {Title: "Allowed", Number: true},
			{Title: "Held back", Number: true}, {Title: "Given back", Number: true},
			{Title: "Not decided", Number: true}, {Title: "Allowed, of asked", Means: "%", Number: true}},
		Empty: "The audit has no user of this message.",
	}
	asked := map[string]int64{}
	for name, s := range u.Segments {
		asked[name] = s.Asked
	}
	for _, name := range mostFirst(asked) {
		s := u.Segments[name]
		t.Rows = append(t.Rows, []frame.Cell{frame.Text(name), frame.Count(s.Asked),
			frame.Count(s.Allowed), frame.Count(s.Denied), frame.Count(s.Released), frame.Count(s.Unavailable),
			share(s.Allowed, s.Asked)})
	}
	return t
}

// addWaves adds a forecast to the page about a campaign: the times at which the denied users may receive the message.
// The denied users come from the audit (record of all decisions).
func addWaves(v *frame.Visit, outlooks *outlooks, data *messageView, view *frame.View) error {
	found, err := outlooks.Of(v, parameters(data.MessageID, data.Namespace, data.Channel),
		func() (*Outlook, error) {
			held, all, err := heldBack(v, data)
			switch {
			case err != nil:
				return nil, err
			case held.count() == 0:
				return &Outlook{Users: all}, nil
			}
			return ask(v, held.some(mostUsers).forecast(data.Channel), all)
		})
	switch {
	case client.HasCode(err, client.CodeConflict):
		data.Waves.Why = "The audit is off, so it is unknown who was held back. Set the key audit in the " +
			"configuration to record decisions; this page then shows them."
		return nil
	case client.HasCode(err, client.CodeRateLimited), client.HasCode(err, client.CodeUnavailable),
		client.HasCode(err, client.CodeOverloaded), client.HasCode(err, client.CodeTooLarge):
		data.Waves.Why = "These numbers could not be read now; the rest of the page is complete. Load the page " +
			"again in a moment. Error of the service: " + err.Error()
		return nil
	case data.Channel == "" && client.HasCode(err, client.CodeInvalidRequest):
		data.Waves.Why = "This message was sent without a channel, but the configuration now requires one, so no " +
			"forecast is possible."
		return nil
	case err != nil:
		return err
	case found.Users == 0:
		data.Waves.Why = "According to the audit no user is held back: every user in a call has a send, or had one " +
			"given back."
		return nil
	case found.Decided == 0:
		data.Waves.Why = "The segments in use do not name the users who were held back, so no forecast is possible."
		return nil
	}
	data.Waves.Outlook = found
	view.Tables = append(view.Tables, found.Table("waves", "When those who were held back may receive something on "+
		orNone(data.Channel)))
	view.Pictures = append(view.Pictures, found.Picture("waves"))
	return nil
}

// heldBack returns the users whom the audit lists as denied, and their number. The returned number also includes
// users whose ids are unknown, because the current segments do not contain them.
func heldBack(v *frame.Visit, data *messageView) (held *group, all uint64, err error) {
	kind, err := kindOf(v)
	if err != nil {
		return nil, 0, err
	}
	if kind == ids.Dense {
		users, err := v.API.DecidedUsers(v.Context(), data.MessageID, data.Channel, data.Namespace)
		if err != nil {
			return nil, 0, err
		}
		held = &group{dense: roaring.New()}
		for _, by := range users.DeniedBitmaps {
			held.dense.Or(by.OrEmpty())
		}
		return held, held.count(), nil
	}
	users, err := v.API.DecidedIDs(v.Context(), data.MessageID, data.Channel, data.Namespace)
	if err != nil {
		return nil, 0, err
	}
	held = &group{}
	for _, limit := range slices.Sorted(maps.Keys(users.Denied)) {
		all += uint64(len(users.Denied[limit]))
		for _, id := range users.Denied[limit] {
			if !strings.HasPrefix(id, "image:") {
				held.texts = append(held.texts, id)
			}
		}
	}
	return held, all, nil
}

// The function "escaped" returns the path of the API call about a message, with the message id escaped. If the argument
// "users" is true, the API call also returns counts of distinct users.
func escaped(id, namespace string, users bool) string {
	query := url.Values{}
	if users {
		query.Set("users", "true")
	}
	if namespace != "" {
		query.Set("namespace", namespace)
	}
	if len(query) == 0 {
		return url.PathEscape(id)
	}
	return url.PathEscape(id) + "?" + query.Encode()
}

// The function "parameters" returns the query parameters that name a campaign in an API call.
func parameters(id, namespace, channel string) string {
	query := url.Values{"message_id": {id}}
	for name, value := range map[string]string{"namespace": namespace, "channel": channel} {
		if value != "" {
			query.Set(name, value)
		}
	}
	return query.Encode()
}
