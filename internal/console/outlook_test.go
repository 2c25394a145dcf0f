package console

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/client/api"
	"capper/internal/console/frame"
)

// TestWhatIsSaidOfACurve checks that the text about a curve matches its points.
func TestWhatIsSaidOfACurve(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 22, 16, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		allowed []int
		want    string
	}{
		"half may already": {[]int{79, 90, 100}, "79 users may receive a message now, and 100 users in 7 days. At " +
			"least half of them may receive one now."},
		"half may later": {[]int{10, 49, 50}, "10 users may receive a message now, and 50 users in 7 days. Half of " +
			"them may receive one from Mon 23 Nov, 04:00 UTC on."},
		"few may": {[]int{0, 1, 1}, "0 users may receive a message now, and 1 user in 7 days. Fewer than half of " +
			"them may receive one within 7 days."},
		"nobody may": {[]int{0, 0, 0}, "0 users may receive a message now, and 0 users in 7 days. None of them may " +
			"receive one within 7 days."},
	} {
		t.Run(name, func(t *testing.T) {
			o := &Outlook{Users: 100, Decided: 100}
			for i, n := range c.allowed {
				o.Points = append(o.Points, api.ForecastPoint{At: start.Add(time.Duration(i) * Step),
					Summary: api.Summary{Allowed: n, Denied: map[string]int{"daily": 100 - n}}})
			}
			require.Equal(t, c.want, o.Alt())
			require.Equal(t, changing(o.Points), timesOf(o.Table("days", "")))
		})
	}
	require.Equal(t, "No instants.", (&Outlook{}).Alt())
}

// TestTextsHaveTheirSingular checks sentences and cells about one thing and about none.
func TestTextsHaveTheirSingular(t *testing.T) {
	t.Parallel()
	require.Contains(t, (&Outlook{Users: 1, Decided: 1}).Says(), "The forecast decides the user for ")
	require.Contains(t, (&Outlook{Users: 2, Decided: 2}).Says(), "The forecast decides each of the 2 users for ")
	lacking := func(n int64) []string { return lacks(&api.Message{Allowed: n, Users: &api.MessageUsers{}}, nil) }
	require.Contains(t, lacking(1)[0], "The store holds 1 more send than the audit shows")
	require.Contains(t, lacking(2)[0], "The store holds 2 more sends than the audit shows")
	require.Equal(t, frame.Count(uint64(3)).With("had 5 to 9"), stepCell(3, 5, 9))
	require.Equal(t, frame.Count(uint64(0)), stepCell(0, 5, 9))
	require.Equal(t, frame.Count(uint64(3)), stepCell(3, 5, 5))
}

// TestASentenceTellsSendsThatWereGivenBack checks the sentence of What if with and without released sends.
func TestASentenceTellsSendsThatWereGivenBack(t *testing.T) {
	t.Parallel()
	r := &api.WhatIf{Calls: 1, Users: api.WhatIfUsers{Asked: 9, Less: 3, More: 1}}
	r.Total.Before.Sends, r.Total.After.Sends = 8, 6
	const said = "Of 9 users, 3 would have received fewer messages and 1 more: 6 sends in place of 8 (-25.0 %)."
	require.Equal(t, said, whatIfSentence(r))
	r.Total.Before.Released, r.Total.After.Released = 2, 1
	require.Equal(t, said+" Of these sends, 1 would have been given back in place of 2; the numbers of users leave "+
		"them out.", whatIfSentence(r))
}

// TestThereIsOneNumberForNow checks that an outlook of a sample has the exact numbers for now.
func TestThereIsOneNumberForNow(t *testing.T) {
	t.Parallel()
	o := &Outlook{Users: 38_940, Decided: 10_000, Points: []api.ForecastPoint{
		{Summary: api.Summary{Allowed: 8_865}}, {Summary: api.Summary{Allowed: 8_865}},
		{Summary: api.Summary{Allowed: 10_000}},
	}}
	exact := o.from(&tried{Users: 38_940, Summary: &api.Summary{Allowed: 34_431}})
	require.Contains(t, exact.Alt(), "34,431 users may receive a message now, and 38,940 users in 7 days")
	require.Contains(t, exact.Says(), "The first time has the numbers above, which are exact.")
	require.Contains(t, o.Alt(), "34,520 users may receive a message now", "another trial keeps the sample")
	rows := exact.Table("days", "").Rows
	require.Len(t, rows, 2, "without times at which nothing changes")
	require.Equal(t, "34,431", rows[0][1].Text)
}

// changing returns the instants whose numbers differ from those before.
func changing(points []api.ForecastPoint) (at []time.Time) {
	for i, p := range points {
		if i == 0 || p.Summary.Allowed != points[i-1].Summary.Allowed {
			at = append(at, p.At)
		}
	}
	return at
}

func timesOf(t *frame.Table) (at []time.Time) {
	for _, row := range t.Rows {
		at = append(at, row[0].At)
	}
	return at
}
