package console

import (
	"fmt"
	"strings"

	"capper/client"
	"capper/client/api"
	"capper/internal/console/frame"
)

// changesPage returns the console page with the differences between two segments generations (published versions).
func changesPage() frame.Page {
	return frame.Page{Path: changesAt, Under: segmentsNav, Template: "changes.html", Files: files, Show: showChanges}
}

// The type "changes" is the data for the template of the page with the differences between two segments generations
// (published versions).
type changes struct {
	From, To string
	Listed   []api.GenerationInfo
	Found    *api.GenerationChanges // nil: the visitor has not named two generations
}

func showChanges(v *frame.Visit) (*frame.View, error) {
	query := v.URL.Query()
	data := &changes{From: query.Get("from"), To: query.Get("to")}
	list, err := v.API.Generations(v.Context())
	if err != nil {
		return nil, err
	}
	data.Listed = list.Generations
	if len(data.Listed) > 1 && data.From == "" && data.To == "" {
		data.From, data.To = data.Listed[1].Generation, data.Listed[0].Generation
	}
	view := &frame.View{Title: "Changes of segments", Question: "Which users joined, left or moved between two " +
		"generations?", Data: data}
	if data.From == "" || data.To == "" {
		return view, nil
	}
	data.Found, err = v.API.GenerationChanges(v.Context(), data.From, data.To)
	if client.HasCode(err, client.CodeNotFound) {
		return nil, notThere()
	}
	if err != nil {
		return nil, err
	}
	view.Tables = []*frame.Table{
		changesTable("segments", "Segments", data.Found.Segments, data.Found.Exact), changesTable("sets", "Sets",
			data.Found.Sets, data.Found.Exact),
	}
	view.Calls = []string{"GET /v1/generations/" + data.To + "/changes?since=" + data.From}
	return view, nil
}

func changesTable(name, caption string, list []api.SegmentChange, exact bool) *frame.Table {
	t := &frame.Table{
		Name: name, Caption: caption + ", before and after",
		Columns: []frame.Column{{Title: "Name"}, {Title: "What happened"}, {Title: "Before", Means: "users",
			Number: true}, {Title: "After", Means: "users", Number: true}},
		Empty: "Neither generation has any of these.",
	}
	if exact {
		t.Columns = append(t.Columns, frame.Column{Title: "Came", Means: "users who are in it now but were not before",
			Number: true}, frame.Column{Title: "Left", Means: "users who were in it before but are not now",
			Number: true})
		if name == "segments" {
			t.Columns = append(t.Columns, frame.Column{Title: "Came from", Means: "other users were in no segment"})
		}
	}
	for _, c := range list {
		row := []frame.Cell{frame.Text(c.Name), frame.Text(happened(&c)), frame.Count(c.Before), frame.Count(c.After)}
		if exact {
			row = append(row, frame.Count(c.Added), frame.Count(c.Removed))
			if name == "segments" {
				row = append(row, frame.Text(movesOf(&c)))
			}
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// The function "happened" describes, in words, the change of a segment or set between two segments generations
// (published versions).
func happened(c *api.SegmentChange) string {
	said, ok := map[string]string{
		"same": "nothing", "changed": "changed", "appears": "added", "vanishes": "removed",
		"empties": "became empty", "fills": "has users now",
	}[c.State]
	if !ok {
		return c.State
	}
	return said
}

func movesOf(c *api.SegmentChange) string {
	moves := make([]string, len(c.MovedFrom))
	for i, m := range c.MovedFrom {
		moves[i] = fmt.Sprintf("%s: %s", m.From, frame.Count(m.Users).Text)
	}
	return strings.Join(moves, ", ")
}

// The method People formats a number of users in words, such as "1 user" or "1,200 users".
func (*changes) People(n uint64) string {
	if n == 1 {
		return "1 user"
	}
	return frame.Count(n).Text + " users"
}
