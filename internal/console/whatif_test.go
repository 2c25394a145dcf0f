package console_test

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/client"
	"capper/client/api"
	"capper/internal/console/browsertest"
)

// whatIfAt returns the address of the page for two days of samples, with changes such as active/daily and 1.
func whatIfAt(s *browsertest.Service, changes ...string) string {
	query := url.Values{"since": {s.Clock.Now().UTC().AddDate(0, 0, -2).Format(time.DateOnly)},
		"until": {s.Clock.Now().UTC().Format(time.DateOnly)}}
	for i := 0; i < len(changes); i += 2 {
		query.Add("limit", changes[i])
		query.Add("max", changes[i+1])
	}
	return "whatif?" + query.Encode()
}

// TestWhatIfShowsWhatTheAPIAnswers compares the page with the API, for two visitors.
func TestWhatIfShowsWhatTheAPIAnswers(t *testing.T) {
	t.Parallel()
	s := browsertest.Serve(t, browsertest.Setup{Keys: true, Audit: true})
	s.Samples()
	one := 1
	end := s.Clock.Now().UTC().Truncate(24 * time.Hour)
	want, err := s.Client(browsertest.Reader).WhatIf(t.Context(), &api.WhatIfRequest{
		Limits: []api.LimitChange{{Segment: "active", Limit: "daily", Max: &one}, {Limit: "weekly", Remove: true}},
		Since:  end.AddDate(0, 0, -2), Campaigns: 200,
	})
	require.NoError(t, err)
	require.Positive(t, want.Users.Less)
	at := whatIfAt(s, "active/daily", "1", "weekly", "none")
	for _, key := range []string{browsertest.Reader, browsertest.Admin} {
		v := visit(t, s)
		v.signIn(key)
		require.Regexp(t, `<option value="active/daily">daily of active \(now \d\)`, v.get(http.StatusOK, "limits"))
		page := v.get(http.StatusOK, at)
		require.Contains(t, page, fmt.Sprintf("<dd>%s</dd>", strings.ReplaceAll(numbered(want.Users.Less), " ", "")))
		require.Contains(t, page, html.EscapeString("weekly of every segment"))
		require.Contains(t, page, "The last day is not over")
		require.NotContains(t, page, `role="alert"`)
		table := v.get(http.StatusOK, at+"&format=csv&table=segments")
		for _, row := range want.Segments {
			require.Regexp(t, fmt.Sprintf(`(?m)^(%s|none \(default\)),%d,%d,[^,]*,%d,%d,%d,%d\r$`, row.Name, row.Before.Sends,
				row.After.Sends, row.Lost, row.Gained, row.Before.Denied, row.After.Denied), table)
		}
		table = v.get(http.StatusOK, at+"&format=csv&table=campaigns")
		for _, row := range want.Campaigns {
			require.Contains(t, table, fmt.Sprintf("%s,%s,%d,%d,", row.Name, row.Channel, row.Before.Sends,
				row.After.Sends))
		}
		require.Contains(t, v.get(http.StatusOK, at+"&format=svg&picture=segments"), "<svg")
	}
	partner := visit(t, s)
	partner.signIn(browsertest.Partner)
	table := partner.get(http.StatusOK, at+"&format=csv&table=campaigns")
	require.NotContains(t, table, "welcome", "other teams' campaigns are sums")
	require.Contains(t, table, "all others")
}

// numbered formats a number like the pages.
func numbered(n int64) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

func TestWhatIfSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	s := browsertest.Serve(t, browsertest.Setup{Audit: true})
	v := visit(t, s)
	for at, want := range map[string]string{
		whatIfAt(s, "active/daily", "x"):                              "must be a whole number",
		whatIfAt(s, "active/daily", ""):                               "must be a whole number",
		whatIfAt(s, "active/daily", "1001"):                           "not a number from 0 to 1000",
		whatIfAt(s, "active/monthly", "1"):                            "the segment active has no limit",
		whatIfAt(s, "<b>/daily", "1"):                                 "is not a segment",
		"whatif?limit=weekly&max=1&since=yesterday":                   "must have the form",
		"whatif?limit=weekly&max=1&since=2026-01-01":                  "more than 92 days",
		"whatif?limit=weekly&max=1&since=2026-05-02&until=2026-05-01": "is not before until",
		"whatif?limit=weekly&max=1&since=2050-05-01&until=2050-05-01": "is in the future",
		"whatif?limit=weekly&max=1&generation=nosuch":                 "must be a generation name",
	} {
		page := v.get(http.StatusBadRequest, at)
		require.Contains(t, html.UnescapeString(page), want, at)
		require.NotContains(t, page, "<b>/")
	}
	for _, at := range []string{"whatif", "whatif?limit=&max=&since=2026-11-02&until=2026-11-09"} { // nothing to replay
		page := v.get(http.StatusOK, at)
		require.Contains(t, page, "<h1>Limits</h1>", at)
		require.Contains(t, page, "Choose a limit", at)
		require.Equal(t, at != "whatif", strings.Contains(page, `value="2026-11-02"`), at)
	}
	require.Contains(t, v.get(http.StatusOK, whatIfAt(s, "weekly", "1")), "The audit has no call in this time.")
	require.Contains(t, v.get(http.StatusOK, whatIfAt(s, "", "", "weekly", "1")), "weekly of every segment")
}

func TestWhatIfWithoutAnAudit(t *testing.T) {
	t.Parallel()
	s := browsertest.Serve(t, browsertest.Setup{Without: "audit: {to: audit} "})
	require.Contains(t, visit(t, s).get(http.StatusOK, whatIfAt(s, "weekly", "1")), "records no audit")
}

// TestAResultOfIDsIsReadEverywhere checks that the address of a result shows the same on an instance that did not
// compute it, and for another key.
func TestAResultOfIDsIsReadEverywhere(t *testing.T) {
	t.Parallel()
	s, other := browsertest.Serve(t, browsertest.Setup{Keys: true}), browsertest.Serve(t, browsertest.Setup{Keys: true})
	s.Samples()
	v, colleague := visit(t, s), visit(t, other)
	v.signIn(browsertest.Reader)
	colleague.signIn(browsertest.Partner)
	var ids []string
	for _, id := range s.Audience() {
		ids = append(ids, fmt.Sprint(id))
	}
	v.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	form := url.Values{"ids": {strings.Join(ids, " ")}, "channel": {"push"},
		"token": {token.FindStringSubmatch(v.get(http.StatusOK, "try"))[1]}}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/console/try",
		strings.NewReader(form.Encode()))
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := v.http.Do(request)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusSeeOther, response.StatusCode)
	at := strings.TrimPrefix(response.Header.Get("Location"), "/console/")
	require.Less(t, len(at), 6100)
	t.Logf("%d bytes", len(at))
	require.NotContains(t, at, ids[0]+" ")

	page := colleague.get(http.StatusOK, at)
	require.Contains(t, page, fmt.Sprintf(" of %s<", numbered(int64(len(ids)))))
	require.Contains(t, page, "This is the result of")
	for _, table := range []string{"segments", "limits", "used", "days"} {
		rows := v.get(http.StatusOK, at+"&format=csv&table="+table)
		require.Equal(t, rows, colleague.get(http.StatusOK, at+"&format=csv&table="+table))
		require.Greater(t, strings.Count(rows, "\n"), 2, table)
	}
	require.Contains(t, colleague.get(http.StatusOK, at+"&format=svg&picture=days"), "<svg")
	for _, wrong := range []string{"try?result=reader.AAAA", "try?result=nobody.AAAA",
		strings.Replace(at, "reader", "admin", 1), at[:len(at)-4] + "AAAA"} {
		require.Contains(t, colleague.get(http.StatusGone, wrong), "send the ids again")
	}
}

// TestAPlannedAudienceIsCompared checks names, used limits and overlaps against the API.
func TestAPlannedAudienceIsCompared(t *testing.T) {
	t.Parallel()
	s := browsertest.Serve(t, browsertest.Setup{})
	s.Samples()
	v := visit(t, s)
	require.Contains(t, v.get(http.StatusOK, "try"), "<code>engaged</code>", "a configured audience")
	exprs := []string{"engaged", "active", "country/my | country/us", "opted-out"}
	at := "try?" + url.Values{"audience": {exprs[0]}, "channel": {"push"}, "other": exprs[1:]}.Encode()
	page := v.get(http.StatusOK, at)
	require.Contains(t, page, "With the other audiences")
	c := s.Client("")
	size := func(expression string) uint64 {
		count, err := c.AudienceCount(t.Context(), &client.Audience{Expression: expression})
		require.NoError(t, err)
		return count.Users
	}
	rows := strings.Split(v.get(http.StatusOK, at+"&format=csv&table=overlap"), "\r\n")
	for i, a := range exprs {
		want := []string{fmt.Sprintf("%d: %s", i+1, a), fmt.Sprint(size(a))}
		for j, b := range exprs {
			if want = append(want, ""); i != j {
				want[len(want)-1] = fmt.Sprint(size("(" + a + ") & (" + b + ")"))
			}
		}
		require.Equal(t, strings.Join(want, ","), rows[i+1])
	}
	total, times := uint64(0), uint64(0)
	for n, users := range regexp.MustCompile(`(?m)^\d,(\d+)\r$`).FindAllStringSubmatch(
		v.get(http.StatusOK, at+"&format=csv&table=messages"), -1) {
		var count uint64
		_, err := fmt.Sscan(users[1], &count)
		require.NoError(t, err)
		total, times = total+count, times+uint64(n+1)*count
	}
	require.Equal(t, size("("+strings.Join(exprs, ") | (")+")"), total)
	require.Equal(t, size(exprs[0])+size(exprs[1])+size(exprs[2])+size(exprs[3]), times)
	require.Contains(t, html.UnescapeString(v.get(http.StatusBadRequest,
		"try?audience=active&other=nosuch&channel=push")), "The audience nosuch: ")

	forecast, err := c.Forecast(t.Context(), &client.ForecastRequest{Channel: "push", Used: true,
		Audience: &client.Audience{Expression: "engaged"}})
	require.NoError(t, err)
	require.NotEmpty(t, forecast.Used)
	used := v.get(http.StatusOK, at+"&format=csv&table=used")
	for _, use := range forecast.Used {
		require.Contains(t, used, fmt.Sprintf("%s,%s,%d,%d,", use.Segment, use.Limit, use.Max, use.Steps[0].Users))
	}
}
