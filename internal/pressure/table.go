package pressure

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"capper/client/api"
)

// Table is a table of the counted messages per person, with a title, column names and rows.
type Table struct {
	Name  string // name for programs
	Title string
	Head  []string
	Rows  [][]string
}

// Tables returns the counts of messages per person as tables. If the argument "whole" is true, the tables are for
// programs: with a column for each number of messages, and with empty cells for unknown numbers. If a week ends before
// the beginning of the audit, the numbers of the week are unknown.
func Tables(p *api.Pressure, whole bool) []Table {
	return []Table{peopleTable(p, whole), atLimits(p), campaigns(p, whole), heldBack(p, whole)}
}

// A table for human readers counts all users with at least shownMost messages in one column.
const shownMost = 7

func peopleTable(p *api.Pressure, whole bool) Table {
	most := api.PressureMost
	if !whole {
		most = 1
		for i := range p.People {
			for _, w := range p.People[i].Weeks {
				for n, users := range w.Got {
					if users > 0 {
						most = max(most, n+1)
					}
				}
			}
		}
		most = min(most, shownMost)
	}
	t := Table{Name: "people", Title: "People by messages in a week", Head: []string{"OF", "NAME", "WEEK TO",
		"MESSAGES", "GOT 0"}}
	for n := 1; n <= most; n++ {
		title := fmt.Sprint("GOT ", n)
		if n == most && (n == api.PressureMost || !whole && n == shownMost) {
			title += "+"
		}
		t.Head = append(t.Head, title)
	}
	for i := range p.People {
		row := &p.People[i]
		for k, w := range row.Weeks {
			counted := []*int64{&w.Messages, w.None}
			for n := 1; n <= most; n++ {
				users := w.Got[n-1]
				if n == most {
					users = sum(w.Got[n-1:])
				}
				counted = append(counted, &users)
			}
			cells := []string{row.By, nameOf(row.Name, whole), p.Weeks[k].To.Format("2006-01-02 15:04")}
			for _, n := range counted {
				if !known(p, k) {
					n = nil
				}
				cells = append(cells, optional(n, whole))
			}
			t.Rows = append(t.Rows, cells)
		}
	}
	return t
}

// The function "known" reports whether the numbers of a week are known: the audit must begin before the end of the
// week.
func known(p *api.Pressure, week int) bool { return p.Weeks[week].To.After(p.AuditBegins) }

func nameOf(name string, whole bool) string {
	if whole {
		return name
	}
	return cmp.Or(name, "-")
}

func number(n int64) string { return strconv.FormatInt(n, 10) }

func optional(n *int64, whole bool) string {
	switch {
	case n != nil:
		return number(*n)
	case whole:
		return ""
	}
	return "unknown"
}

func atLimits(p *api.Pressure) Table {
	t := Table{Name: "at-limits", Title: "People at a limit now", Head: []string{"SEGMENT", "LIMIT", "MAX", "WINDOW",
		"CHANNELS", "USERS", "SEGMENT SIZE"}}
	for i := range p.AtLimits {
		row := &p.AtLimits[i]
		for _, l := range row.Limits {
			t.Rows = append(t.Rows, []string{row.Segment, l.Name, strconv.Itoa(l.Max), l.Window,
				cmp.Or(strings.Join(l.Channels, " "), "all"), number(l.Users), optional(row.Size, true)})
		}
		if len(row.Limits) > 1 {
			t.Rows = append(t.Rows, []string{row.Segment, "(any)", "", "", "", number(row.Any),
				optional(row.Size, true)})
		}
	}
	return t
}

func campaigns(p *api.Pressure, whole bool) Table {
	t := Table{Name: "campaigns", Title: "Campaigns by messages", Head: []string{"MESSAGE", "NAMESPACE", "CHANNEL",
		"MESSAGES", "RELEASED", "HELD BACK"}}
	for i := range p.Weeks {
		t.Head = append(t.Head, "TO "+p.Weeks[i].To.Format("2006-01-02"))
	}
	for i := range p.Campaigns {
		c := &p.Campaigns[i]
		row := append(names(&c.PressureMessage, whole), number(sum(c.Messages)), number(sum(c.Released)),
			number(sum(c.HeldBack)))
		for k := range c.Messages {
			n := &c.Messages[k]
			if !known(p, k) {
				n = nil
			}
			row = append(row, optional(n, whole))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// The function "names" returns the table cells that identify a campaign. In a table for human readers, the cells
// contain the title of the campaign. In a table for programs, the cells contain only the campaign's id.
func names(m *api.PressureMessage, whole bool) []string {
	message := m.MessageID
	if !whole && m.Title != "" {
		message = m.Title + " (" + m.MessageID + ")"
	}
	return []string{message, nameOf(m.Namespace, whole), nameOf(m.Channel, whole)}
}

func heldBack(p *api.Pressure, whole bool) Table {
	t := Table{Name: "held-back", Title: "People held back from a campaign, and the campaigns that had sent to them",
		Head: []string{"MESSAGE", "NAMESPACE", "CHANNEL", "HELD BACK", "TAKEN BY", "BY NAMESPACE", "BY CHANNEL",
			"USERS"}}
	for i := range p.HeldBack {
		h := &p.HeldBack[i]
		begin := append(names(&h.PressureMessage, whole), number(h.Users))
		if len(h.TakenBy) == 0 {
			t.Rows = append(t.Rows, append(slices.Clone(begin), nameOf("", whole), nameOf("", whole), nameOf("", whole),
				"0"))
		}
		for k := range h.TakenBy {
			by := &h.TakenBy[k]
			t.Rows = append(t.Rows, append(append(slices.Clone(begin), names(&by.PressureMessage, whole)...),
				number(by.Users)))
		}
	}
	return t
}
