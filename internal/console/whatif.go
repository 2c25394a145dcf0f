package console

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"capper/client"
	"capper/client/api"
	"capper/internal/chart"
	"capper/internal/console/frame"
)

const whatIfAt = "whatif"

// whatIfPage returns the console page for what-if replays, which decide recorded calls again under other limits.
func whatIfPage() frame.Page {
	p := &whatIfs{turns: map[string]*whatIfTurn{}}
	return frame.Page{Path: whatIfAt, Under: "Limits", Template: "whatif.html whatifform.html", Files: files,
		Show: p.show}
}

// whatIfCampaigns is the maximum number of campaigns that the what-if page lists.
const whatIfCampaigns = 200

// whatIfForm is the form in which a visitor chooses other limits, under which the page decides earlier calls again.
// The query parameters of the page contain the values of the form.
type whatIfForm struct {
	Limits       []choice // limits of the current policy
	Changes      []whatIfChange
	Since, Until string // first and last day in UTC
	Generation   string // "": the generation that each call used
}

// whatIfChange is a row of the what-if form, with a limit and its new maximum.
type whatIfChange struct {
	Limits []choice
	Max    string // a number, or the text none
	N      int    // number of the row, beginning with 1
}

// The constant "none" is the text that a visitor enters as the maximum of a limit, in order to remove the limit.
const none = "none"

// newWhatIfForm returns the what-if form for the current policy, filled in with the values of a query. The default
// period is the last 14 days.
func newWhatIfForm(policy *api.Policy, query url.Values, now time.Time) whatIfForm {
	f := whatIfForm{
		Since: cmp.Or(query.Get("since"), now.UTC().AddDate(0, 0, -13).Format(time.DateOnly)),
		Until: cmp.Or(query.Get("until"), now.UTC().Format(time.DateOnly)), Generation: query.Get("generation"),
	}
	limits, maxima := query["limit"], query["max"]
	for i, limit := range limits {
		if i < len(maxima) && limit != "" && len(f.Changes) < api.MaxLimitChanges {
			f.add(policy, limit, maxima[i])
		}
	}
	f.add(policy, "", "")
	return f
}

func (f *whatIfForm) add(policy *api.Policy, limit, maximum string) {
	f.Changes = append(f.Changes, whatIfChange{limitChoices(policy, limit), maximum, len(f.Changes) + 1})
}

// limitChoices lists the limits of the policy for a selection field: each limit's name for all segments, and each limit
// of a single segment. The returned choices of limits also include the limit that the visitor has chosen, even if the
// policy no longer has it.
func limitChoices(policy *api.Policy, chosen string) []choice {
	byName := map[string][]int{}
	list := []choice{{Text: "choose a limit"}}
	segment := func(name string, limits []api.Limit) {
		for _, l := range limits {
			byName[l.Name] = append(byName[l.Name], l.Max)
			list = append(list, choice{Value: name + "/" + l.Name,
				Text: fmt.Sprintf("%s of %s (now %d)", l.Name, name, l.Max)})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(policy.Segments)) {
		segment(name, policy.Segments[name])
	}
	segment(api.NoSegment, policy.Default)
	var everywhere []choice
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		if of := byName[name]; len(of) > 1 {
			everywhere = append(everywhere, choice{Value: name, Text: fmt.Sprintf("%s of every segment (now %s)", name,
				spread(of))})
		}
	}
	list = slices.Insert(list, 1, everywhere...)
	for i := range list {
		list[i].Chosen = list[i].Value == chosen
	}
	if !slices.ContainsFunc(list, func(c choice) bool { return c.Chosen }) {
		list = append(list, choice{Value: chosen, Text: chosen, Chosen: true})
	}
	return list
}

// The function "spread" returns a text with the smallest and the largest of several numbers, such as "1 to 3".
func spread(of []int) string {
	least, most := slices.Min(of), slices.Max(of)
	if least == most {
		return strconv.Itoa(least)
	}
	return fmt.Sprintf("%d to %d", least, most)
}

// whatIfView is the data for the template of the what-if page.
type whatIfView struct {
	Form    whatIfForm
	Wrong   string   // reason why the service rejected the request
	Instead string   // address of a similar request that the service may accept; "": none
	NoAudit bool     // no audit is configured
	Asked   []string // description of the changed limits
	Result  *api.WhatIf
	Says    string
	Fixed   bool // the result is final: later calls cannot change it
}

func (w *whatIfs) show(v *frame.Visit) (*frame.View, error) {
	policy, err := v.API.Limits(v.Context())
	if err != nil {
		return nil, err
	}
	query := v.URL.Query()
	p := &whatIfView{Form: newWhatIfForm(policy, query, v.Now)}
	view := &frame.View{
		Title:    "What if",
		Question: "Who would have received more messages, and who fewer, under other limits?",
		Data:     p, Calls: []string{"POST /v1/whatif"},
	}
	request, fault := p.request(v.Now)
	switch {
	case fault == "" && len(request.Limits) == 0: // the page Limits contains the form
		return &frame.View{To: formAt(query)}, nil
	case fault != "":
		p.Wrong = fault
	default:
		p.Asked = asked(policy, request.Limits)
		p.Result, err = w.of(v, policy.Version, request)
	}
	if err = p.refused(v, view, err); err != nil {
		return nil, err
	}
	if p.Wrong != "" && view.Status == 0 {
		view.Status = http.StatusBadRequest
	}
	if p.Result != nil {
		p.Fixed = !request.Until.IsZero()
		p.present(view)
	}
	return view, nil
}

// formAt returns the address of the what-if form on the page "Limits", with the period that a query names.
func formAt(query url.Values) string {
	kept := url.Values{}
	for _, name := range []string{"since", "until", "generation"} {
		if value := query.Get(name); value != "" {
			kept.Set(name, value)
		}
	}
	at := url.URL{Path: "/console/limits", RawQuery: kept.Encode(), Fragment: "whatif"}
	return at.String()
}

// The method request converts the values of the what-if form to an API request. If the values of the form are invalid,
// the result "fault" describes the error. If the form names the current day as last day, the request covers the time
// until now.
func (p *whatIfView) request(now time.Time) (r *api.WhatIfRequest, fault string) {
	r = &api.WhatIfRequest{Generation: p.Form.Generation, Campaigns: whatIfCampaigns}
	for _, row := range p.Form.Changes {
		at := slices.IndexFunc(row.Limits, func(c choice) bool { return c.Chosen })
		if row.Limits[at].Value == "" {
			continue
		}
		change := api.LimitChange{Limit: row.Limits[at].Value}
		if i := strings.LastIndexByte(change.Limit, '/'); i >= 0 {
			change.Segment, change.Limit = change.Limit[:i], change.Limit[i+1:]
		}
		if text := strings.TrimSpace(row.Max); text == none {
			change.Remove = true
		} else {
			n, err := strconv.Atoi(text)
			if err != nil {
				return r, fmt.Sprintf("The new number of %s must be a whole number, or %q for no such limit.",
					row.Limits[at].Value, none)
			}
			change.Max = &n
		}
		r.Limits = append(r.Limits, change)
	}
	var errs [2]error
	r.Since, errs[0] = time.Parse(time.DateOnly, p.Form.Since)
	r.Until, errs[1] = time.Parse(time.DateOnly, p.Form.Until)
	if errs[0] != nil || errs[1] != nil {
		return r, "The days must have the form 2026-11-20."
	}
	if p.Form.Until == now.UTC().Format(time.DateOnly) {
		r.Until = time.Time{}
	} else {
		r.Until = r.Until.AddDate(0, 0, 1)
	}
	return r, ""
}

// If the API rejected the request, the method "refused" adds the reason to the what-if page. The method returns any
// other error.
func (p *whatIfView) refused(v *frame.Visit, view *frame.View, err error) error {
	var e *client.Error
	if err == nil || !asError(err, &e) {
		return err
	}
	switch e.Code {
	case client.CodeConflict:
		p.NoAudit = true
		return nil
	case client.CodeInvalidRequest, client.CodeTooLarge, client.CodeGone:
		p.Wrong, view.Status = e.Message, e.Status
	default:
		return err
	}
	if status, err := v.API.Status(v.Context()); err == nil && e.Code == client.CodeGone {
		instead := v.URL.Query()
		instead.Set("generation", status.Segments.Generation)
		p.Instead = "/console/" + whatIfAt + "?" + instead.Encode()
	}
	return nil
}

// The function "asked" returns a description of the limits that the visitor has changed.
func asked(policy *api.Policy, changes []api.LimitChange) (said []string) {
	for _, c := range changes {
		next := "no such limit"
		if c.Max != nil {
			next = strconv.Itoa(*c.Max)
		}
		var of []int
		for segment, limits := range policy.Segments {
			if c.Segment == "" || c.Segment == segment {
				of = append(of, maximaOf(limits, c.Limit)...)
			}
		}
		if _, own := policy.Segments[c.Segment]; c.Segment == "" || !own {
			of = append(of, maximaOf(policy.Default, c.Limit)...)
		}
		text := c.Limit + " of " + cmp.Or(c.Segment, "every segment")
		if len(of) > 0 {
			text += ", now " + spread(of)
		}
		said = append(said, text+": "+next)
	}
	return said
}

func maximaOf(limits []api.Limit, name string) (maxima []int) {
	for _, l := range limits {
		if l.Name == name {
			maxima = append(maxima, l.Max)
		}
	}
	return maxima
}

// The method "present" adds the summary, the charts and the tables of a what-if result to the page.
func (p *whatIfView) present(view *frame.View) {
	r := p.Result
	p.Says = whatIfSentence(r)
	view.Tables = append(view.Tables,
		whatIfRows("segments", "By segment", "Segment", r.Segments), whatIfCampaignTable(r), whatIfLimits(r),
		whatIfUserTable(&r.Users), whatIfRows("days", "By day, in UTC", "Day", r.Days))
	view.Pictures = append(view.Pictures,
		whatIfPicture("segments", "Sends by segment, as recorded and under the other limits.", r.Segments, chart.Bars),
		whatIfPicture("days", "Sends a day, as recorded and under the other limits.", r.Days,
			func(p chart.Picture, series []chart.Series, _ bool) ([]byte, error) { return chart.Lines(p, series) }))
}

// whatIfSentence describes the result of the what-if replay in a sentence.
func whatIfSentence(r *api.WhatIf) string {
	if r.Calls == 0 {
		return "The audit has no call in this time."
	}
	u, before, after := &r.Users, r.Total.Before.Sends, r.Total.After.Sends
	return fmt.Sprintf("Of %s, %s would have received fewer messages and %s more: %s sends in place of %s%s.%s",
		people(uint64(max(u.Asked, 0))), frame.Count(u.Less).Text, frame.Count(u.More).Text, frame.Count(after).Text,
		frame.Count(before).Text, inPercent(before, after), givenBack(r.Total.Before.Released, r.Total.After.Released))
}

// givenBack returns a text with the number of released sends (removed from users' logs), or "" if no sends were
// released.
func givenBack(before, after int64) string {
	if before == 0 && after == 0 {
		return ""
	}
	return fmt.Sprintf(" Of these sends, %s would have been given back in place of %s; the numbers of users leave "+
		"them out.", frame.Count(after).Text, frame.Count(before).Text)
}

// inPercent formats the change from the argument "before" to the argument "after" in percent, in parentheses. If the
// argument "before" is 0, inPercent returns "".
func inPercent(before, after int64) string {
	if before == 0 {
		return ""
	}
	return fmt.Sprintf(" (%+.1f %%)", 100*float64(after-before)/float64(before))
}

var whatIfColumns = []frame.Column{
	{Title: "Sends", Means: "recorded", Number: true}, {Title: "Would be", Number: true},
	{Title: "Change", Means: "%", Number: true},
	{Title: "No more", Means: "sends that the other limits deny", Number: true},
	{Title: "Only then", Means: "sends that only the other limits allow", Number: true},
	{Title: "Held back", Means: "answers", Number: true}, {Title: "Would be", Means: "answers", Number: true},
}

func whatIfCells(row *api.WhatIfRow) []frame.Cell {
	b, a := &row.Before, &row.After
	change := frame.Text("")
	if b.Sends > 0 {
		change = frame.Number(100*float64(a.Sends-b.Sends)/float64(b.Sends), 1)
	}
	return []frame.Cell{frame.Count(b.Sends), frame.Count(a.Sends), change, frame.Count(row.Lost),
		frame.Count(row.Gained), frame.Count(b.Denied), frame.Count(a.Denied)}
}

func whatIfRows(name, caption, first string, rows []api.WhatIfRow) *frame.Table {
	t := &frame.Table{Name: name, Caption: caption, Columns: append([]frame.Column{{Title: first}}, whatIfColumns...),
		Empty: "There is none in this time."}
	for i := range rows {
		t.Rows = append(t.Rows, append([]frame.Cell{frame.Text(rows[i].Name)}, whatIfCells(&rows[i])...))
	}
	return t
}

// whatIfCampaignTable returns a table with the change of each campaign's number of sends. Each row of the table of
// campaigns has a link to the page of the campaign.
func whatIfCampaignTable(r *api.WhatIf) *frame.Table {
	t := &frame.Table{Name: "campaigns", Caption: "By campaign, the largest changes first",
		Columns: append([]frame.Column{{Title: "Campaign"}, {Title: "Channel"}}, whatIfColumns...),
		Empty:   "There is no campaign in this time."}
	for i := range r.Campaigns {
		row := &r.Campaigns[i]
		to := campaignAt(&api.Message{MessageID: row.Name, Namespace: row.Namespace, Channel: row.Channel})
		t.Rows = append(t.Rows, append([]frame.Cell{frame.Titled(row.Title, row.Name, to),
			frame.Text(cmp.Or(row.Channel, "none"))}, whatIfCells(row)...))
	}
	if r.Others != nil {
		t.Rows = append(t.Rows, append([]frame.Cell{frame.Text("all others"), frame.Text("")},
			whatIfCells(r.Others)...))
	}
	return t
}

func whatIfLimits(r *api.WhatIf) *frame.Table {
	t := &frame.Table{Name: "limits", Caption: "Held back, by limit",
		Columns: []frame.Column{{Title: "By"}, {Title: "Held back", Means: "answers", Number: true},
			{Title: "Would be", Means: "answers", Number: true}},
		Empty: "No user was or would have been held back."}
	for _, c := range r.Limits {
		t.Rows = append(t.Rows, []frame.Cell{frame.Text(c.Name), frame.Count(c.Before), frame.Count(c.After)})
	}
	return t
}

func whatIfUserTable(u *api.WhatIfUsers) *frame.Table {
	t := &frame.Table{Name: "users", Caption: "Users by what changes for them",
		Columns: []frame.Column{{Title: "Messages"}, {Title: "Users", Means: "each once", Number: true}},
		Empty:   "No user was asked for in this time."}
	add := func(said string, users int64) {
		t.Rows = append(t.Rows, []frame.Cell{frame.Text(said), frame.Count(users)})
	}
	if u.Asked == 0 {
		return t
	}
	for _, step := range u.By {
		word := "more"
		if step.More < 0 {
			word = "fewer"
		}
		add(fmt.Sprintf("%d %s", max(step.More, -step.More), word), step.Users)
	}
	add("as many, but others or at another time", u.Moved)
	add("nothing changes", u.Unchanged)
	return t
}

// mostBars is the maximum number of bars in a what-if chart. The table below the chart has all rows.
const mostBars = 20

// whatIfPicture returns a chart that compares, for each row of a table, the recorded sends with the sends under the
// other limits.
func whatIfPicture(name, caption string, rows []api.WhatIfRow,
	draw func(chart.Picture, []chart.Series, bool) ([]byte, error)) *frame.Picture {
	before, after := chart.Series{Name: "as recorded"}, chart.Series{Name: "under the other limits"}
	var labels []string
	if name == "segments" {
		rows = rows[:min(mostBars, len(rows))]
	}
	for i := range rows {
		labels = append(labels, rows[i].Name)
		before.Values = append(before.Values, float64(rows[i].Before.Sends))
		after.Values = append(after.Values, float64(rows[i].After.Sends))
	}
	return &frame.Picture{Name: name, Caption: caption, Alt: caption + " The table below has the numbers.",
		Draw: func(dark bool) ([]byte, error) {
			return draw(chart.Picture{Labels: labels, Dark: dark, Unit: "sends"}, []chart.Series{before, after}, false)
		}}
}

// whatIfAge is the time for which the console keeps the result of a what-if replay. The constant whatIfKept is the
// maximum number of what-if results that the console keeps. Because the console keeps the results, all tables and
// charts of a page need only one replay.
const (
	whatIfAge  = 5 * time.Minute
	whatIfKept = 32
)

// whatIfs requests what-if replays from the API, and keeps their results for whatIfAge. A whatIfs is safe for
// concurrent use.
type whatIfs struct {
	mu    sync.Mutex
	turns map[string]*whatIfTurn
}

// whatIfTurn holds the result of a what-if replay. If several visitors request one replay, the first request computes
// the result, and the other visitors wait for this result.
type whatIfTurn struct {
	turn   chan struct{}
	result *api.WhatIf
	at     time.Time
}

// The method "of" returns the result of a what-if request, from the kept results or from a new replay. Several visitors
// with the same request wait for one replay, because each API key may run only one replay at a time.
func (w *whatIfs) of(v *frame.Visit, config string, r *api.WhatIfRequest) (*api.WhatIf, error) {
	asked, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	t := w.turn(strings.Join([]string{v.Session.Key, config, string(asked)}, "\x00"), v.Now)
	select {
	case t.turn <- struct{}{}:
		defer func() { <-t.turn }()
	case <-v.Context().Done():
		return nil, v.Context().Err()
	}
	if t.result != nil {
		return t.result, nil
	}
	result, err := v.API.WhatIf(v.Context(), r)
	if err == nil {
		t.result = result
	}
	return result, err
}

// The method turn returns the stored whatIfTurn (result of a replay) for the request with the given name, or a new
// whatIfTurn.
func (w *whatIfs) turn(name string, now time.Time) *whatIfTurn {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t := w.turns[name]; t != nil && now.Sub(t.at).Abs() < whatIfAge {
		return t
	}
	oldest := ""
	for other, t := range w.turns {
		if now.Sub(t.at).Abs() >= whatIfAge {
			delete(w.turns, other)
		} else if oldest == "" || t.at.Before(w.turns[oldest].at) {
			oldest = other
		}
	}
	if len(w.turns) >= whatIfKept {
		delete(w.turns, oldest)
	}
	w.turns[name] = &whatIfTurn{turn: make(chan struct{}, 1), at: now}
	return w.turns[name]
}
