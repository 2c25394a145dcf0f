package console

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"capper/client"
	"capper/client/api"
	"capper/internal/console/frame"
)

func asError(err error, e **client.Error) bool { return errors.As(err, e) }

// The method "scaled" converts a number of users in the trial's sample to a number for the whole audience.
func (t *tried) scaled(n int) uint64 {
	if t.Sampled == 0 {
		return uint64(max(n, 0))
	}
	return uint64(float64(n)/float64(t.Sampled)*float64(t.Users) + 0.5)
}

// The method Counted explains in a sentence how the numbers for the current time were computed.
func (t *tried) Counted() string {
	if t.Sampled == 0 {
		return "Every user was decided as for a send now."
	}
	return fmt.Sprintf("The audience is too large to decide at once: a sample of %s was decided as for a send now, "+
		"and the numbers are scaled to all users.", frame.Count(t.Sampled).Text)
}

// The method Undecided returns the number of users without a decision, as text, scaled to the whole audience. If every
// user has a decision, Undecided returns "".
func (t *tried) Undecided() string {
	if t.Summary.Unavailable == 0 {
		return ""
	}
	return frame.Count(t.scaled(t.Summary.Unavailable)).Text
}

func trySegments(t *tried) *frame.Table {
	table := &frame.Table{
		Name: "segments", Caption: "By segment, now",
		Columns: []frame.Column{{Title: "Segment"}, {Title: "Users", Means: "of the audience", Number: true},
			{Title: "May receive", Means: "users, now", Number: true}, {Title: "Of them", Means: "%", Number: true}},
		Empty: "The audience has no users. Compare the expression with the page Segments.",
	}
	names := slices.Sorted(maps.Keys(t.Summary.Segments))
	slices.SortStableFunc(names,
		func(a, b string) int { return t.Summary.Segments[b].Requested - t.Summary.Segments[a].Requested })
	for _, name := range names {
		s := t.Summary.Segments[name]
		table.Rows = append(table.Rows, []frame.Cell{frame.Text(name), frame.Count(t.scaled(s.Requested)),
			frame.Count(t.scaled(s.Allowed)), percent(s.Allowed, s.Requested)})
	}
	return table
}

func percent(part, whole int) frame.Cell {
	if whole == 0 {
		return frame.Text("")
	}
	return frame.Number(100*float64(part)/float64(whole), 1)
}

func tryLimits(t *tried) *frame.Table {
	table := &frame.Table{
		Name: "limits", Caption: "Held back, now",
		Columns: []frame.Column{{Title: "By"}, {Title: "Users", Means: "now", Number: true},
			{Title: "Of all", Means: "%", Number: true}},
		Empty: "No user is held back.",
	}
	add := func(name string, users int) {
		table.Rows = append(table.Rows, []frame.Cell{frame.Text(name), frame.Count(t.scaled(users)),
			percent(users, t.Summary.Requested)})
	}
	for _, name := range slices.Sorted(maps.Keys(t.Summary.Denied)) {
		add(name, t.Summary.Denied[name])
	}
	return table
}

// tryParts returns a table of the users whom sets suppress, and of the allowed users whom shadow limits (limits on
// trial) would deny.
func tryParts(t *tried) *frame.Table {
	table := &frame.Table{
		Name: "parts", Caption: "Suppressed users by set, and users whom shadow limits would hold back",
		Columns: []frame.Column{{Title: "Part of"}, {Title: "By"}, {Title: "Users", Means: "now", Number: true}},
	}
	add := func(of, by string, users int) {
		table.Rows = append(table.Rows, []frame.Cell{frame.Text(of), frame.Text(by), frame.Count(t.scaled(users))})
	}
	for _, set := range slices.Sorted(maps.Keys(t.Summary.Suppressed)) {
		add(api.LimitSuppressed, set, t.Summary.Suppressed[set])
	}
	for _, name := range slices.Sorted(maps.Keys(t.Summary.ShadowDenied)) {
		add("may receive", name, t.Summary.ShadowDenied[name])
	}
	return table
}

// The method "precise" returns a note for a table: the numbers for the current time are exact, or come from the larger
// of two samples.
func (t *tried) precise() string {
	if t.Sampled == 0 {
		return "exact"
	}
	return "of the larger sample"
}

// usedColumns is the maximum number of table columns for users who have not reached a limit.
const usedColumns = 6

// tryUsed returns a table with the number of users by limit and by the number of used sends.
func tryUsed(t *tried) *frame.Table {
	table := &frame.Table{
		Name: "used", Caption: "How much of their limits they have had",
		Columns: []frame.Column{{Title: "Segment"}, {Title: "Limit"}, {Title: "At most", Number: true}},
		Empty:   "No limit applies to these users on this channel.",
	}
	width := 1
	for _, use := range t.Used {
		width = max(width, min(len(use.Steps)-1, usedColumns))
	}
	for n := range width {
		table.Columns = append(table.Columns, frame.Column{Title: fmt.Sprintf("Had %d", n), Means: "users",
			Number: true})
	}
	table.Columns = append(table.Columns, frame.Column{Title: "Limit reached", Means: "users", Number: true})
	for _, use := range t.Used {
		row := []frame.Cell{frame.Text(use.Segment), frame.Text(use.Limit), frame.Count(use.Max)}
		last := len(use.Steps) - 1
		for n := range width {
			if n >= last {
				row = append(row, frame.Text(""))
				continue
			}
			row = append(row, stepCell(t.scaled(use.Steps[n].Users), use.Steps[n].Sends, use.Steps[n+1].Sends-1))
		}
		table.Rows = append(table.Rows, append(row, frame.Count(t.scaled(use.Steps[last].Users))))
	}
	return table
}

// stepCell returns a table cell with the number of users who had between "least" and "most" sends. If "least" and
// "most" differ, the cell has a note with both numbers.
func stepCell(users uint64, least, most int) frame.Cell {
	cell := frame.Count(users)
	if most > least && users > 0 {
		cell = cell.With(fmt.Sprintf("had %d to %d", least, most))
	}
	return cell
}
