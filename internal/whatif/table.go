package whatif

import (
	"fmt"
	"strings"
	"time"

	"capper/client/api"
)

// Table is a table of texts with a title, column names, and rows. Numbers are already formatted.
type Table struct {
	Title string
	Says  string // content of the table, in a sentence
	Head  []string
	Rows  [][]string
}

// Sentences returns sentences that summarise the result of a replay.
func Sentences(r *Result) (lines []string) {
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	if r.Calls == 0 {
		add("the audit has no call in this period")
		return lines
	}
	add("%s to %s, %s, %s asked for, counted in each call; %s of these were judged again",
		r.Since.Format(time.RFC3339), r.Until.Format(time.RFC3339), many(r.Calls, "call"), many(r.Asked, "user"),
		number(r.Judged))
	before, after := r.Total.Before, r.Total.After
	add("sends: %s recorded, %s under these limits (%s)", number(before.Sends), number(after.Sends),
		percent(before.Sends, after.Sends))
	u := r.Users
	add("users: of %s in the recorded calls, %s would have received fewer sends, %s more, %s equally many but other "+
		"sends or at another time; for %s nothing changes",
		number(u.Asked), number(u.Less), number(u.More), number(u.Moved), number(u.Unchanged))
	if len(r.Configs) > 1 {
		add("%d versions of the configuration decided the recorded calls: the counts contain the effects of their "+
			"differences, too", len(r.Configs))
	}
	return append(lines, unjudged(r)...)
}

// The function "unjudged" returns sentences about recorded decisions that the replay could not judge. Decisions that
// the replay could not judge are missing from the counts.
func unjudged(r *Result) (lines []string) {
	add := func(n int64, format string) {
		if n > 0 {
			lines = append(lines, fmt.Sprintf(format, number(n)))
		}
	}
	add(r.Unavailable, "not replayed: %s results of unavailable users: only their retries count")
	add(r.Erased, "not replayed: %s results of users who have been erased since")
	add(r.Gaps, "not replayed: %s missing records")
	add(r.Total.After.Unjudged, "not replayed: %s users whom these limits could not decide because a set is missing")
	return append(lines, r.Notes...)
}

// Tables returns the counts of a replay as tables. The argument "campaigns" of Tables is the maximum number of
// campaigns to list.
func Tables(r *Result, campaigns int) []Table {
	tables := []Table{
		rows("Sends a day", "All times are in UTC. Denials are counted per call: a user in three calls can be "+
			"denied three times.", "day",
			r.Days),
		rows("By segment", "The users of each segment, by the generation that decided.", "segment", r.Segments),
		changesTable("Denials by limit", "Who is denied is counted for the limit, or what else withholds sends, that "+
			"answers name.", "limit", r.Limits),
		rows("By channel", "", "channel", r.Channels),
		rows("By campaign", "One row for each message and channel; the largest changes come first.", "campaign",
			named(r.Campaigns[:min(campaigns, len(r.Campaigns))])),
		users(r.Users),
	}
	if more := len(r.Campaigns) - campaigns; more > 0 {
		tables[4].Says += fmt.Sprintf(" %s more are in the answer as JSON.", number(int64(more)))
	}
	if len(r.Shadow) > 0 {
		tables = append(tables, changesTable("Shadow limits", "Users who are allowed and whom the shadow limit alone "+
			"would have denied.", "limit", r.Shadow))
	}
	return tables
}

func named(campaigns []api.WhatIfRow) []api.WhatIfRow {
	list := make([]api.WhatIfRow, len(campaigns))
	for i, row := range campaigns {
		list[i] = row
		list[i].Name = campaignName(&row)
	}
	return list
}

func campaignName(row *api.WhatIfRow) string {
	name := row.Name
	if row.Namespace != "" {
		name = row.Namespace + "/" + name
	}
	if row.Channel != "" {
		name += " on " + row.Channel
	}
	return name
}

func rows(title, says, first string, list []api.WhatIfRow) Table {
	t := Table{Title: title, Says: says, Head: []string{first, "sends", "would be", "change", "lost", "gained",
		"denied", "would be"}}
	released := false
	for i := range list {
		released = released || list[i].Before.Released+list[i].After.Released > 0
	}
	if released {
		t.Head = append(t.Head, "released", "would be")
	}
	for i := range list {
		b, a := &list[i].Before, &list[i].After
		row := []string{list[i].Name, number(b.Sends), number(a.Sends), percent(b.Sends, a.Sends),
			number(list[i].Lost), number(list[i].Gained), number(b.Denied), number(a.Denied)}
		if released {
			row = append(row, number(b.Released), number(a.Released))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func changesTable(title, says, first string, list []api.WhatIfChange) Table {
	t := Table{Title: title, Says: says, Head: []string{first, "denied", "would be", "change"}}
	if title == "Shadow limits" {
		t.Head[1] = "users"
	}
	for _, c := range list {
		t.Rows = append(t.Rows, []string{c.Name, number(c.Before), number(c.After), percent(c.Before, c.After)})
	}
	return t
}

func users(u api.WhatIfUsers) Table {
	t := Table{Title: "Users by what changes for them", Says: "Number of sends that a user would have received more " +
		"or less in the whole period.", Head: []string{"sends", "users"}}
	for _, step := range u.By {
		t.Rows = append(t.Rows, []string{signed(step.More), number(step.Users)})
	}
	t.Rows = append(t.Rows, []string{"as many, but others", number(u.Moved)}, []string{"nothing changes",
		number(u.Unchanged)})
	return t
}

// The function number formats a count with thousands separators: 1,234,567.
func number(n int64) string {
	text := fmt.Sprint(n)
	sign := ""
	if n < 0 {
		sign, text = "-", text[1:]
	}
	var parts []string
	for len(text) > 3 {
		parts = append([]string{text[len(text)-3:]}, parts...)
		text = text[:len(text)-3]
	}
	return sign + strings.Join(append([]string{text}, parts...), ",")
}

// The function "many" formats a count together with its noun, in singular or plural.
func many(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return number(n) + " " + thing + "s"
}

// The function percent returns the relative change of a count, or "new" if the count was 0 before.
func percent(before, after int64) string {
	switch {
	case before == after:
		return "0 %"
	case before == 0:
		return "new"
	}
	return fmt.Sprintf("%+.1f %%", 100*float64(after-before)/float64(before))
}

func signed(n int) string { return fmt.Sprintf("%+d", n) }
