package browsertest

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/client"
	"capper/client/api"
)

// rows returns the cells of a table's body, and opens a folded table.
func (tab *Tab) rows(table string) [][]string {
	tab.t.Helper()
	Eval[any](tab, "document.querySelectorAll('#table-' + %q + ' details').forEach(d => d.open = true)", table)
	return Eval[[][]string](tab, "[...document.querySelectorAll('#table-' + %q + ' tbody tr')].map(r => "+
		"[...r.cells].map(c => c.innerText.trim()))", table)
}

// figures returns the large numbers of a page by their meaning.
func (tab *Tab) figures() map[string]string {
	tab.t.Helper()
	return Eval[map[string]string](tab, "Object.fromEntries([...document.querySelectorAll('.figures div')].map(d => "+
		"[d.querySelector('dt').innerText, d.querySelector('dd').innerText]))")
}

// figure returns the large number whose meaning begins with the given words.
func (tab *Tab) figure(begins string) string {
	tab.t.Helper()
	for means, number := range tab.figures() {
		if strings.HasPrefix(means, begins) {
			return number
		}
	}
	require.Fail(tab.t, "no such figure: "+begins, "%v", tab.figures())
	return ""
}

// said formats a number in the console's way.
func said[T int | int64 | uint64](n T) string {
	text := strconv.FormatInt(int64(n), 10)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// testCampaigns compares the list and the page of each campaign with the API.
func testCampaigns(t *testing.T, s *suite) {
	var answer api.Messages
	s.keyed.Get("/v1/messages?since="+
		url.QueryEscape(s.keyed.ends.AddDate(0, 0, -7).UTC().Format("2006-01-02T15:04:05Z")), &answer)
	require.Len(t, answer.Messages, 6)
	tab := s.signIn(t, s.keyed, Reader)
	tab.Leave(func() { tab.Click("nav a[href*=campaigns]") })
	rows := tab.rows("campaigns")
	require.Len(t, rows, len(answer.Messages))
	for i, m := range answer.Messages {
		held := int64(0)
		for _, n := range m.Denied {
			held += n
		}
		require.Equal(t, []string{m.MessageID, m.Channel, "none", said(m.Asked), said(m.Allowed), said(m.Released),
			said(held), said(m.Unavailable)}, rows[i][:8])
	}
	for i, m := range answer.Messages {
		tab.Open("/console/campaigns")
		tab.Leave(func() { tab.Click(fmt.Sprintf("#table-campaigns tbody tr:nth-child(%d) a", i+1)) })
		require.Contains(t, tab.Text("h1"), m.MessageID)
		var one api.MessageChannels
		s.keyed.Get("/v1/messages/"+m.MessageID+"?users=true", &one)
		users := one.Channels[0].Users
		require.Equal(t, said(users.Asked), tab.figure("users asked for"))
		require.Equal(t, said(users.Allowed), tab.figure("users sent to"))
		require.Equal(t, said(users.Released), tab.figure("users whose send was given back"))
		require.Equal(t, m.Allowed-m.Released, users.Allowed, "the store and the audit agree")
		tab.rows("answers") // opens the table
		answers := strings.Join(strings.Fields(tab.Text("#table-answers")), " ")
		require.Contains(t, answers, "asked "+said(m.Asked))
		require.Contains(t, answers, "by retries "+said(m.Replayed))
		segments := map[string][]string{}
		for _, row := range tab.rows("segments") {
			segments[row[0]] = row[1:6]
		}
		require.Len(t, segments, len(users.Segments))
		asked := int64(0)
		for name, segment := range users.Segments {
			require.Equal(t, []string{said(segment.Asked), said(segment.Allowed), said(segment.Denied),
				said(segment.Released), said(segment.Unavailable)}, segments[name], name)
			asked += segment.Asked
		}
		require.Equal(t, users.Asked, asked)
		for limit, n := range m.Denied {
			require.Contains(t, answers, "denied by "+limit+" "+said(n))
		}
		for limit, n := range users.Denied {
			require.Contains(t, strings.Join(strings.Fields(tab.Text("#table-limits")), " "), limit+" "+said(n))
		}
	}
	require.Equal(t, http.StatusNotFound, tab.Open("/console/campaign?id=nobody-sent-this"))
	require.Empty(t, tab.Faults())
}

// testUser compares the page about a user with the API's explanation.
func testUser(t *testing.T, s *suite) {
	var user api.Explanation
	tab := s.signIn(t, s.keyed, Reader)
	tab.Open("/console/users")
	tab.Fill("#id", "7")
	tab.Leave(func() { tab.Press("\r") })
	require.Equal(t, "/console/users?id=7", tab.Path())
	require.Equal(t, "User 7", tab.Text("h1"))
	s.keyed.Get("/v1/users/7", &user)
	require.NotEmpty(t, user.Sends)
	for i, row := range tab.rows("limits") {
		require.Equal(t, []string{user.Limits[i].Name, strconv.Itoa(user.Limits[i].Used),
			strconv.Itoa(user.Limits[i].Max)}, row[:3])
	}
	sends := tab.rows("sends")
	require.Len(t, sends, len(user.Sends))
	for i, send := range user.Sends {
		require.Equal(t, []string{*send.Channel, *send.MessageID}, sends[len(sends)-1-i][1:3])
	}
	decisions := fmt.Sprint(tab.rows("decisions"))
	require.Regexp(t, `reminder held back daily`, decisions, "from the audit")
	require.Regexp(t, `welcome allowed`, decisions)
	require.False(t, tab.Has("form [name=again]"), "who may only look is offered no erasure")
	require.Contains(t, Eval[string](tab, "document.querySelector('.erase').textContent"), "needs the scope admin")

	tab.Fill("#message", "reminder")
	tab.Leave(func() { tab.Press("\r") })
	require.Equal(t, "/console/users?id=7&message=reminder", tab.Path())
	require.Regexp(t, `On push: held back .* ago by daily`, tab.Text("#why"))
	require.Empty(t, tab.Faults())
	tab.Open("/console/users?id=7&message=welcome")
	require.Regexp(t, `On push: the send was allowed .* ago`, tab.Text("#why"))
	tab.Open("/console/users?id=7&message=never-sent")
	require.Contains(t, tab.Text("#why"), "No such message: no message of the last 31 days has this id or title")

	tab.Open("/console/users?id=13")
	require.Contains(t, tab.Text("main"), "opted-out", "who is suppressed")
	require.Equal(t, http.StatusOK, tab.Open("/console/users?id=4000000000"), "nobody has heard of that user")
	require.Contains(t, tab.Text("#table-sends"), "No send of this user is recorded")
	for _, wrong := range []string{"abc", "-1", "4294967296", "1e3", "7%207", "%3Cscript%3E"} {
		require.Equal(t, http.StatusBadRequest, tab.Open("/console/users?id="+wrong), wrong)
		require.Contains(t, tab.Text("[role=alert]"), "whole number from 0 to 4294967295")
		require.Empty(t, tab.Faults())
	}
}

// testEyes checks the frame of the pages: rows keep their names on a phone, long names are cut, and times have the
// viewer's zone.
func testEyes(t *testing.T, s *suite) {
	service := Serve(t, Setup{Audit: audited})
	long := strings.Repeat("long-name", 14)
	service.send(long, "push", []uint32{7})
	service.send("short", "push", []uint32{8})
	tab := s.Tab(t, service.URL)
	for _, width := range []int64{1440, Phone.Width} {
		tab.On(Screen{width, 900})
		tab.Open("/console/campaigns")
		require.Less(t, Eval[float64](tab, "document.querySelector('#table-campaigns tbody th').offsetWidth"), 340.0)
		box := "document.querySelector('#table-campaigns .scroll')"
		if width == 1440 {
			require.True(t, Eval[bool](tab, "%[1]s.scrollWidth <= %[1]s.clientWidth", box), "a table fits")
			continue
		}
		require.Less(t, Eval[float64](tab, "document.querySelector('#table-campaigns tbody th').offsetWidth"), 160.0)
		Eval[any](tab, "%s.scrollLeft = 10000", box)
		require.Zero(t, Eval[float64](tab, "%[1]s.querySelector('tbody th').getBoundingClientRect().left - "+
			"%[1]s.getBoundingClientRect().left", box), "the name stays in sight")
		Eval[any](tab, "document.querySelector('#table-campaigns tbody th a[href*=long]').focus()")
		require.True(t, Eval[bool](tab, "(a => a.scrollWidth <= a.clientWidth)(document.querySelector("+
			"'#table-campaigns tbody th a[href*=long]'))"), "all of the name is shown")
		require.Empty(t, tab.Faults())
	}
	tab.Open("/console/users?id=7")
	require.Contains(t, Eval[string](tab, "document.querySelector('#picture-timeline img').currentSrc"), "narrow=1")

	require.NotContains(t, Eval[string](tab, "document.querySelector('footer').textContent"), "your time")
	tab.In("America/New_York")
	tab.Open("/console/users?id=7")
	require.Regexp(t, `your time`, Eval[string](tab, "document.querySelector('footer').textContent"))
	require.Regexp(t, ` UTC · .*(GMT-[45]|E[DS]T), your time`,
		Eval[string](tab, "document.querySelector('#table-sends time').textContent"))
	require.Empty(t, tab.Faults())
}

// testSizes checks that no page is larger than 60 kB.
func testSizes(t *testing.T, s *suite) {
	tab := s.signIn(t, s.keyed, Admin)
	for _, path := range s.pages {
		size := Eval[int](tab, "fetch(%q).then(r => r.blob()).then(b => b.size)", path)
		require.Positive(t, size)
		require.Less(t, size, 60_000, path)
	}
}

// testErase checks that an erasure needs the scope, the token and the repeated id.
func testErase(t *testing.T, s *suite) {
	service := Serve(t, Setup{Keys: true})
	service.send("welcome", "push", []uint32{42, 43})
	sends := func(user string) int {
		var e api.Explanation
		service.Get("/v1/users/"+user, &e)
		return len(e.Sends)
	}
	tab := s.signIn(t, service, Admin)
	tab.Open("/console/users?id=42")
	again := func(text string) {
		tab.Click(".erase summary")
		tab.Fill("#again", text)
		tab.Leave(func() { tab.Press("\r") })
	}
	again("43")
	require.Contains(t, tab.Text("[role=alert]"), "Nothing was erased")
	require.Empty(t, tab.Faults())
	require.Equal(t, 1, sends("42"))
	require.Equal(t, 1, sends("43"))
	again("42")
	require.Contains(t, tab.Text("[role=status].good"), "User 42 was erased")
	require.Empty(t, tab.Faults())
	require.Zero(t, sends("42"))
	require.Equal(t, 1, sends("43"))

	// A visitor without the scope can still send the form by hand.
	reader := s.signIn(t, service, Reader)
	reader.Open("/console/users?id=43")
	reader.Leave(func() {
		Eval[any](reader, `(() => {
			const form = document.querySelector("form.who");
			form.action = "/console/users?id=43";
			form.append(Object.assign(document.createElement("input"), {name: "again", value: "43"}));
			form.submit();
		})()`)
	})
	require.Equal(t, http.StatusForbidden, reader.Status())
	require.Contains(t, reader.Text("main"), "Nothing was erased")
	require.Empty(t, reader.Faults())
	require.Equal(t, 1, sends("43"))
}

// testTryIt compares the page that tries a campaign with the API, and checks that nothing is recorded.
func testTryIt(t *testing.T, s *suite) {
	tab := s.signIn(t, s.keyed, Reader)
	tab.Open("/console/try")
	tab.Fill("#audience", "engaged - country/us")
	Eval[any](tab, "document.querySelector('#channel').value = 'email'")
	tab.Leave(func() { tab.Click("form:has(#audience) button") })
	require.Contains(t, tab.Path(), "audience=engaged+-+country%2Fus&channel=email")
	preview, err := s.keyed.Client(Engine).Filter(t.Context(), &client.FilterRequest{
		Channel: "email", Preview: true, Counts: true, Audience: &client.Audience{Expression: "engaged - country/us"},
	})
	require.NoError(t, err)
	require.Contains(t, tab.figure("users may receive something now"), said(preview.Summary.Allowed)+" of "+
		said(preview.Summary.Requested))
	require.True(t, tab.Has("#table-days tbody tr"), "the next seven days")
	require.Empty(t, tab.Faults())

	for expression, want := range map[string]string{"active - ": "column 10", "active & nosuch": "nosuch",
		"(active": "column", "<b>active": "column 1"} {
		tab.Fill("#audience", expression)
		tab.Leave(func() { tab.Press("\r") })
		require.Contains(t, tab.Text("[role=alert]"), want, expression)
		require.Equal(t, "true", Eval[string](tab, "document.querySelector('#audience').getAttribute('aria-invalid')"))
		require.Equal(t, expression, Eval[string](tab, "document.querySelector('#audience').value"), "to be corrected")
		require.GreaterOrEqual(t, tab.Status(), 400)
		require.Empty(t, tab.Faults())
	}

	tab.Open("/console/try")
	tab.Click("details:has(#ids) summary")
	tab.Fill("#ids", "7 9, 11\r9 4000000000")
	tab.Leave(func() { tab.Click("form:has(#ids) button") })
	require.Contains(t, tab.figure("users may receive something now"), " of 4")
	require.Contains(t, tab.Text("main"), "1 ids were given more than once")
	require.Empty(t, tab.Faults())

	file := filepath.Join(t.TempDir(), "ids.txt")
	require.NoError(t, os.WriteFile(file, []byte("7\n9\n11\n"), 0o600))
	tab.Open("/console/try")
	tab.Click("details:has(#ids) summary")
	tab.Upload("#file", file)
	tab.Leave(func() { tab.Click("form:has(#ids) button") })
	require.Contains(t, tab.figure("users may receive something now"), " of 3")

	require.NoError(t, os.WriteFile(file, []byte("7\nseven\n"), 0o600))
	tab.Open("/console/try")
	tab.Click("details:has(#ids) summary")
	tab.Upload("#file", file)
	tab.Leave(func() { tab.Click("form:has(#ids) button") })
	require.Contains(t, tab.Text("[role=alert]"), "seven")
	require.Empty(t, tab.Faults())
}

// testSegments compares the shown sizes, generations and changes with the published ones.
func testSegments(t *testing.T, s *suite) {
	var status api.Status
	s.keyed.Get("/v1/status", &status)
	tab := s.signIn(t, s.keyed, Reader)
	tab.Open("/console/segments")
	for table, sizes := range map[string][]api.SegmentSize{"segments": status.Segments.Segments,
		"sets": status.Segments.Sets} {
		rows := tab.rows(table)
		require.Len(t, rows, len(sizes))
		for i, size := range sizes {
			require.Equal(t, []string{size.Name, said(size.Users)}, rows[i][:2])
		}
	}
	generations := tab.rows("generations")
	require.Len(t, generations, 2)
	require.Equal(t, status.Segments.Generation, generations[0][0])
	require.Contains(t, generations[0][1], "in use here")
	tab.Leave(func() { tab.Click("#table-generations a") })
	require.Contains(t, tab.Text("#table-segments"), "active")
	require.Contains(t, tab.Text("main"), "7 ", "so many joined")
	require.Equal(t, http.StatusNotFound, tab.Open("/console/segments/changes?from=20200101T000000.000Z-00000000&to="+
		status.Segments.Generation))
	require.Empty(t, tab.Faults())
}

// testLimitsAndPacers compares the shown limits and pacers with the current ones.
func testLimitsAndPacers(t *testing.T, s *suite) {
	var policy api.Policy
	s.keyed.Get("/v1/limits", &policy)
	tab := s.signIn(t, s.keyed, Reader)
	tab.Open("/console/limits")
	text := tab.Text("#table-limits")
	want := len(policy.Default)
	for segment, limits := range policy.Segments {
		want += len(limits)
		require.Contains(t, text, segment)
		for _, limit := range limits {
			require.Contains(t, text, limit.Name)
		}
	}
	require.Len(t, tab.rows("limits"), want)
	require.Contains(t, tab.Text("main"), policy.Version)

	var pacers api.Pacers
	s.keyed.Get("/v1/pacers", &pacers)
	tab.Open("/console/pacers")
	require.NotEmpty(t, pacers.Pacers)
	for _, pacer := range pacers.Pacers {
		require.Contains(t, tab.Text("main"), pacer.Name)
	}
}

// testPressure compares the page with the API.
func testPressure(t *testing.T, s *suite) {
	var p api.Pressure
	s.keyed.Get("/v1/pressure", &p)
	tab := s.signIn(t, s.keyed, Reader)
	require.Equal(t, http.StatusOK, tab.Open("/console/pressure"))
	require.Len(t, tab.rows("people"), len(p.People), "the audit begins in the last week")
	require.Contains(t, tab.Text("#table-people"), said(p.People[0].Weeks[0].Messages))
	require.NotEmpty(t, p.Campaigns)
	require.Len(t, tab.rows("campaigns"), len(p.Campaigns))
	require.Contains(t, tab.Text("#table-campaigns"), p.Campaigns[0].MessageID)
	require.NotEmpty(t, p.HeldBack)
	require.Contains(t, tab.Text("#table-held-back"), p.HeldBack[0].MessageID)
	require.Empty(t, tab.Faults())
}

// hostile lists dangerous message ids that the API accepts.
var hostile = []string{
	`<script>document.title = "ran"</script>`, `"><img src=x onerror="document.title='ran'">`,
	`' onmouseover='document.title="ran"`, `</title><script>document.title="ran"</script>`,
	"\u202etxt.exe", "../../v1/status", "a/b?c=d#e", "50%2Foff", "%", "javascript:alert(1)", "{{.Data}}",
	`=HYPERLINK("http://example.com")`, "-- ", "😀 é\u0301", "a&lt;b&amp;c",
}

// testHostile checks that a page shows every message id literally and runs no script in it.
func testHostile(t *testing.T, s *suite) {
	service := Serve(t, Setup{Audit: audited})
	for i, id := range hostile {
		service.send(id, "push", []uint32{uint32(100 + i)})
	}
	tab := s.Tab(t, service.URL)
	tab.Open("/console/campaigns")
	shown := Eval[[]string](tab, "[...document.querySelectorAll('#table-campaigns tbody th')].map(c => c.textContent)")
	legible := make([]string, len(hostile))
	for i, id := range hostile {
		legible[i] = strings.ReplaceAll(id, "\u202e", "[U+202E]")
	}
	require.ElementsMatch(t, legible, shown)
	require.Empty(t, tab.Faults())
	for _, to := range tab.links("#table-campaigns tbody a") {
		require.Equal(t, http.StatusOK, tab.Open(to), to)
		id := strings.TrimPrefix(Eval[string](tab, "document.querySelector('h1').textContent"), "Campaign ")
		require.Contains(t, legible, id)
		require.Equal(t, "1", tab.figure("users sent to"), id)
		require.Empty(t, tab.Faults(), id)
		require.Contains(t, Eval[string](tab, "document.title"), " · capper", "nothing ran")
	}
	for i, id := range legible {
		tab.Open(fmt.Sprintf("/console/users?id=%d", 100+i))
		require.Contains(t, Eval[string](tab, "document.querySelector('#table-sends').textContent"), id)
		require.Contains(t, Eval[string](tab, "document.title"), " · capper")
		require.Equal(t, "svg ", Eval[string](tab, "fetch(document.querySelector('main img').src).then(r => r.text())."+
			"then(t => new DOMParser().parseFromString(t, 'image/svg+xml')).then(d => d.documentElement.localName + "+
			"' ' + [...d.querySelectorAll('script, foreignObject')].map(e => e.outerHTML))"))
	}
	tab.Open("/console/try?audience=" + url.QueryEscape(`<script>document.title="ran"</script>`))
	require.Contains(t, Eval[string](tab, "document.title"), " · capper")
	tab.Open("/console/campaigns?sort=" + url.QueryEscape(`"><script>document.title="ran"</script>`))
	require.Contains(t, Eval[string](tab, "document.title"), " · capper")
}
