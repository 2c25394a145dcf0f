package console

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"capper/client"
	"capper/client/api"
	"capper/internal/console/frame"
)

const (
	listAt      = "campaigns"
	oneAt       = "campaign"
	messagesNav = "Campaigns"
)

// messageAddress returns the console address of the page about a message, on all channels.
func messageAddress(id, namespace string) string { return addressOf(id, namespace, "") }

func addressOf(id, namespace, channel string) string {
	query := url.Values{"id": {id}}
	if namespace != "" {
		query.Set("namespace", namespace)
	}
	if channel != "" {
		query.Set("channel", channel)
	}
	return "/console/" + oneAt + "?" + query.Encode()
}

// messagesPage returns the console page that lists the campaigns.
func messagesPage() frame.Page {
	return frame.Page{
		Path:     listAt,
		Nav:      messagesNav,
		Live:     true,
		Template: "messages.html",
		Files:    files,
		Show:     showList,
	}
}

// messagesView is the data for the template of the page that lists campaigns.
type messagesView struct {
	search
	Sinces   []choice
	Channels []choice
	Sorts    []link
	First    string // address of the first page; "": this page is the first
	Next     string // address of the next page; "": this page is the last
}

// A search holds the fields of the search form above the list of campaigns.
type search struct {
	Since, ID, Channel, Team, Least, Sort, Cursor string
}

func searchOf(query url.Values) search {
	since := cmp.Or(query.Get("since"), usualSince)
	s := search{since, strings.TrimSpace(query.Get("id")), query.Get("channel"), strings.TrimSpace(query.Get("team")),
		strings.TrimSpace(query.Get("least")), query.Get("sort"), query.Get("cursor")}
	if s.Sort != client.SortAsked {
		s.Sort = client.SortLastCall
	}
	return s
}

// The method At returns the console address of the list of campaigns, with the values of the search form.
func (s search) At() string {
	query := url.Values{"since": {s.Since}}
	for name, value := range map[string]string{"id": s.ID, "channel": s.Channel, "team": s.Team, "least": s.Least,
		"sort": s.Sort, "cursor": s.Cursor} {
		if value != "" && value != client.SortLastCall {
			query.Set(name, value)
		}
	}
	return "/console/" + listAt + "?" + query.Encode()
}

// The method query converts the values of the search form to an API query for one page of the list of campaigns.
func (s search) query(now time.Time) (client.MessagesQuery, error) {
	known, back := sinceOf(s.Since)
	if s.Since != known {
		return client.MessagesQuery{}, &frame.Refusal{Status: http.StatusBadRequest,
			What: "The page has no such period.", Do: "Choose a period from the list."}
	}
	q := client.MessagesQuery{Since: now.Add(-back).UTC().Truncate(time.Minute), ID: s.ID, Channel: s.Channel,
		Namespace: s.Team, Sort: s.Sort, Max: pageSize, Cursor: s.Cursor}
	if s.Least == "" {
		return q, nil
	}
	least, err := strconv.ParseUint(s.Least, 10, 53)
	if err != nil {
		return q, &frame.Refusal{Status: http.StatusBadRequest, What: "The least number of users is not a number.",
			Do: "Write digits only, such as 10000, or leave the field empty."}
	}
	q.MinAsked = int64(least)
	return q, nil
}

// A choice is an option that a visitor can choose in a selection field of a form.
type choice struct {
	Value, Text string
	Chosen      bool
}

// A link is a link with a text and an address. An empty address marks the current page.
type link struct{ Text, To string }

// The variable "sinces" lists the periods that visitors can choose for the list of campaigns.
var sinces = []choice{{Value: "24h", Text: "the last 24 hours"}, {Value: "7d", Text: "the last 7 days"},
	{Value: "31d", Text: "the last 31 days"}}

// usualSince is the period for visitors who have chosen no period.
const usualSince = "7d"

// sinceOf returns the length of a period. For an unknown period, sinceOf returns the period usualSince.
func sinceOf(text string) (string, time.Duration) {
	switch text {
	case "24h":
		return text, 24 * time.Hour
	case "31d":
		return text, 31 * 24 * time.Hour
	}
	return usualSince, 7 * 24 * time.Hour
}

// pageSize is the maximum number of campaigns on a page of the list.
const pageSize = 100

func showList(v *frame.Visit) (*frame.View, error) {
	asked := searchOf(v.URL.Query())
	policy, err := v.API.Limits(v.Context())
	if err != nil {
		return nil, err
	}
	if _, known := policy.Channels[asked.Channel]; asked.Channel != "" && !known {
		return nil, &frame.Refusal{Status: http.StatusBadRequest, What: "The configuration has no channel of " +
			"this name.", Do: "Choose a channel from the list."}
	}
	query, err := asked.query(v.Now)
	if err != nil {
		return nil, err
	}
	found, err := v.API.Messages(v.Context(), query)
	if err != nil {
		return nil, err
	}
	data := &messagesView{search: asked, Sinces: chosen(sinces, asked.Since),
		Channels: chosen(channelChoices(policy), asked.Channel), Sorts: asked.sorts()}
	if page := asked; asked.Cursor != "" {
		page.Cursor = ""
		data.First = page.At()
	}
	if page := asked; found.Next != nil {
		page.Cursor = *found.Next
		data.Next = page.At()
	}
	return &frame.View{
		Title: "Campaigns", Question: "Which messages were sent recently, and to how many users?", Data: data,
		Tables: []*frame.Table{listTable(found.Messages)},
		Calls:  []string{"GET " + query.Path()},
	}, nil
}

// The method "sorts" returns two links to the list of campaigns: sorted by the latest call, and by the number of
// requested users.
func (s search) sorts() (links []link) {
	for _, order := range []link{{"latest call", client.SortLastCall}, {"asked", client.SortAsked}} {
		other := s
		other.Sort, other.Cursor = order.To, ""
		next := link{order.Text, other.At()}
		if order.To == s.Sort {
			next.To = ""
		}
		links = append(links, next)
	}
	return links
}

func chosen(choices []choice, value string) []choice {
	list := slices.Clone(choices)
	for i := range list {
		list[i].Chosen = list[i].Value == value
	}
	return list
}

func channelChoices(p *api.Policy) []choice {
	list := []choice{{Text: "all channels"}}
	for name := range p.Channels {
		list = append(list, choice{Value: name, Text: name})
	}
	slices.SortFunc(list[1:], func(a, b choice) int { return strings.Compare(a.Text, b.Text) })
	return list
}

func listTable(messages []api.Message) *frame.Table {
	t := &frame.Table{
		Name: "campaigns", Caption: "Campaigns: a message on a channel",
		Columns: []frame.Column{
			{Title: "Message"}, {Title: "Channel"}, {Title: "Team", Means: "namespace of the key"},
			{Title: "Asked", Means: "in answers", Number: true},
			{Title: "Allowed", Means: "sends", Number: true}, {Title: "Given back", Means: "sends", Number: true},
			{Title: "Held back", Means: "in answers", Number: true},
			{Title: "Not decided", Means: "in answers", Number: true}, {Title: "Latest call"},
		},
		Empty: "No campaigns in this period match. A campaign is listed here after its first call to POST " +
			"/v1/filter with " +
			"a message id, or after capper filter.",
	}
	titled := slices.ContainsFunc(messages, func(m api.Message) bool { return m.Title != "" })
	if titled {
		t.Columns = append([]frame.Column{{Title: "Title"}}, t.Columns...)
	}
	for i := range messages {
		m := &messages[i]
		row := []frame.Cell{
			frame.Link(m.MessageID, addressOf(m.MessageID, m.Namespace, m.Channel)), frame.Text(orNone(m.Channel)),
			frame.Text(orNone(m.Namespace)), frame.Count(m.Asked),
			sendsCell(m, m.Allowed), sendsCell(m, m.Released), frame.Count(overall(m.Denied)),
			frame.Count(m.Unavailable), frame.Time(m.LastCall),
		}
		if titled {
			title := row[0]
			title.Text, row[0].To = cmp.Or(m.Title, m.MessageID), ""
			row = append([]frame.Cell{title}, row...)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func orNone(text string) string { return cmp.Or(text, "none") }

// The function "overall" returns the total number of denied users for all reasons.
func overall(denied map[string]int64) (users int64) {
	for _, n := range denied {
		users += n
	}
	return users
}

// The function share returns a table cell with the percentage that the argument "part" is of the argument "whole". If
// "whole" is 0, the cell is empty.
func share(part, whole int64) frame.Cell {
	if whole <= 0 {
		return frame.Text("")
	}
	return frame.Number(100*float64(part)/float64(whole), 1)
}
