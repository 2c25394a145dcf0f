package console

import (
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
	listAt      = "campaigns"
	oneAt       = "campaign"
	messagesNav = "Campaigns"
)

// messageAddress returns the console address of a message's campaign on all channels.
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

// messagesPage returns the page that lists the campaigns.
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

// messagesView is the data of the list's template.
type messagesView struct {
	Since    string // text of the form's field
	Sinces   []choice
	Channels []choice
	Sorts    []link
	More     bool
	Shown    int
}

// choice is an option of a form field.
type choice struct {
	Value, Text string
	Chosen      bool
}

// link is a text with a target address. An empty address marks the current page.
type link struct{ Text, To string }

// sinces lists the periods that the list of campaigns can show.
var sinces = []choice{{Value: "24h", Text: "the last 24 hours"}, {Value: "7d", Text: "the last 7 days"},
	{Value: "31d", Text: "the last 31 days"}}

func sinceOf(text string) (string, time.Duration) {
	switch text {
	case "24h":
		return text, 24 * time.Hour
	case "31d":
		return text, 31 * 24 * time.Hour
	}
	return "7d", 7 * 24 * time.Hour
}

// orders lists the columns by which the list can be sorted, in descending order.
var orders = []struct {
	name, text string
	by         func(*api.Message) int64
}{
	{"last", "latest call", func(m *api.Message) int64 { return m.LastCall.UnixMilli() }},
	{"asked", "asked", func(m *api.Message) int64 { return m.Asked }},
	{"allowed", "allowed", func(m *api.Message) int64 { return m.Allowed }},
	{"denied", "held back", denied},
}

// mostListed is the maximum number of campaigns in the list.
const mostListed = 1000

func showList(v *frame.Visit) (*frame.View, error) {
	query := v.URL.Query()
	since, back := sinceOf(query.Get("since"))
	channel, order := query.Get("channel"), query.Get("sort")
	policy, err := v.API.Limits(v.Context())
	if err != nil {
		return nil, err
	}
	if _, known := policy.Channels[channel]; channel != "" && !known {
		return nil, &frame.Refusal{Status: http.StatusBadRequest, What: "The configuration has no channel of " +
			"this name.", Do: "Choose a channel from the list."}
	}
	from := v.Now.Add(-back).UTC().Truncate(time.Minute)
	found, err := v.API.Messages(v.Context(), client.MessagesQuery{Since: from, Channel: channel, Max: mostListed})
	if err != nil {
		return nil, err
	}
	sortBy(found.Messages, order)
	call := "GET /v1/messages?since=" + from.Format(time.RFC3339)
	if channel != "" {
		call += "&channel=" + url.QueryEscape(channel)
	}
	return &frame.View{
		Title: "Campaigns", Question: "Which messages were sent recently, and to how many users?",
		Data: &messagesView{
			Since: since, Sinces: chosen(sinces, since), Channels: chosen(channelChoices(policy), channel),
			Sorts: sorts(since, channel, order),
			More:  found.More, Shown: len(found.Messages),
		},
		Tables: []*frame.Table{listTable(found.Messages)},
		Calls:  []string{call},
	}, nil
}

func sortBy(messages []api.Message, order string) {
	for _, o := range orders {
		if o.name == order {
			slices.SortStableFunc(messages, func(a, b api.Message) int {
				return int(max(-1, min(1, o.by(&b)-o.by(&a))))
			})
		}
	}
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

// sorts returns links to the same list in other orders.
func sorts(since, channel, order string) (links []link) {
	for i, o := range orders {
		query := url.Values{"since": {since}, "sort": {o.name}}
		if channel != "" {
			query.Set("channel", channel)
		}
		next := link{o.text, "/console/" + listAt + "?" + query.Encode()}
		if o.name == order || order == "" && i == 0 {
			next.To = ""
		}
		links = append(links, next)
	}
	return links
}

func listTable(messages []api.Message) *frame.Table {
	t := &frame.Table{
		Name: "campaigns", Caption: "Campaigns: a message on a channel",
		Columns: []frame.Column{
			{Title: "Message"}, {Title: "Channel"}, {Title: "Team", Means: "namespace of the key"},
			{Title: "Asked", Means: "users, in answers", Number: true},
			{Title: "Allowed", Means: "sends", Number: true}, {Title: "Given back", Means: "sends", Number: true},
			{Title: "Held back", Means: "users, in answers", Number: true},
			{Title: "Not decided", Means: "users, in answers", Number: true}, {Title: "Latest call"},
		},
		Empty: "No campaigns in this period. A campaign is listed here after its first call to POST /v1/filter with " +
			"a message id, or after capper filter.",
	}
	for i := range messages {
		m := &messages[i]
		t.Rows = append(t.Rows, []frame.Cell{
			frame.Link(m.MessageID, addressOf(m.MessageID, m.Namespace, m.Channel)), frame.Text(orNone(m.Channel)),
			frame.Text(orNone(m.Namespace)), frame.Count(m.Asked),
			sendsCell(m, m.Allowed), sendsCell(m, m.Released), frame.Count(denied(m)), frame.Count(m.Unavailable),
			frame.Time(m.LastCall),
		})
	}
	return t
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

// denied returns the number of denials over all reasons.
func denied(m *api.Message) (users int64) {
	for _, n := range m.Denied {
		users += n
	}
	return users
}

// share returns a table cell with part of whole in percent, or an empty cell when whole is 0.
func share(part, whole int64) frame.Cell {
	if whole <= 0 {
		return frame.Text("")
	}
	return frame.Number(100*float64(part)/float64(whole), 1)
}
