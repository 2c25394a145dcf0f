package console_test

import (
	"bytes"
	"context"
	"html"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/client"
	"capper/internal/console/browsertest"
	"capper/internal/testkit"
)

// visitor requests pages like a browser without scripts.
type visitor struct {
	t    testing.TB
	at   string
	http *http.Client
}

func visit(t testing.TB, s *browsertest.Service) *visitor {
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	return &visitor{t, s.URL, &http.Client{Jar: jar}}
}

func (v *visitor) do(method, path, kind string, body io.Reader) (int, string) {
	v.t.Helper()
	request, err := http.NewRequestWithContext(context.Background(), method, v.at+"/console/"+path, body)
	require.NoError(v.t, err)
	if kind != "" {
		request.Header.Set("Content-Type", kind)
	}
	response, err := v.http.Do(request)
	require.NoError(v.t, err)
	defer response.Body.Close()
	page, err := io.ReadAll(response.Body)
	require.NoError(v.t, err)
	return response.StatusCode, string(page)
}

// get returns the text of a page, which must have the given status.
func (v *visitor) get(status int, path string) string {
	v.t.Helper()
	got, page := v.do(http.MethodGet, path, "", nil)
	require.Equal(v.t, status, got, "%s: %s", path, page)
	return page
}

var token = regexp.MustCompile(`name="token" value="([^"]*)"`)

// post sends the form of a page to an address.
func (v *visitor) post(from, to string, form url.Values) (int, string) {
	v.t.Helper()
	found := token.FindStringSubmatch(v.get(http.StatusOK, from))
	require.NotNil(v.t, found, "%s has no form", from)
	form.Set("token", found[1])
	return v.do(http.MethodPost, to, "application/x-www-form-urlencoded", strings.NewReader(form.Encode()))
}

func (v *visitor) signIn(key string) {
	v.t.Helper()
	status, page := v.post("sign-in", "sign-in", url.Values{"key": {key}})
	require.Equal(v.t, http.StatusOK, status, page)
}

const hostile = `"><script>alert(1)</script>/../' &#x3c;=HYPERLINK("x")`

func TestAUserWithAnAudit(t *testing.T) {
	t.Parallel()
	s := browsertest.Serve(t, browsertest.Setup{Audit: true})
	s.Samples()
	_, err := s.Client("").Filter(t.Context(), &client.FilterRequest{MessageID: hostile, Channel: "email",
		Users: []uint32{1011, 42}})
	require.NoError(t, err)
	v := visit(t, s)
	require.Contains(t, v.get(http.StatusOK, "users"), "Type the user id")
	require.Contains(t, v.get(http.StatusBadRequest, "users?id=4294967296"), "whole number from 0 to 4294967295")
	page := ""
	require.Eventually(t, func() bool { // the audit writes once a second
		page = v.get(http.StatusOK, "users?id=1011")
		return strings.Contains(page, "held back") && strings.Contains(page, html.EscapeString(hostile)[:10])
	}, testkit.Patience, 50*time.Millisecond)
	require.Contains(t, page, "not before")
	require.Contains(t, page, "because daily has 1 of 1 send used in any 24 hours")
	require.NotContains(t, page, "<script>alert")
	table := v.get(http.StatusOK, "users?id=1011&format=csv&table=decisions")
	require.Contains(t, table, "promo-7")
	svg := v.get(http.StatusOK, "users?id=1011&format=svg&picture=timeline&theme=dark")
	require.Contains(t, svg, "<circle")
	require.Contains(t, svg, "1 of 1")

	status, page := v.post("users?id=1011", "users?id=1011", url.Values{"again": {"1012"}})
	require.Equal(t, http.StatusBadRequest, status)
	require.Contains(t, page, "Nothing was erased")
	status, page = v.post("users?id=1011", "users?id=1011", url.Values{"again": {"1011"}})
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, page, "User 1011 was erased")
	require.Contains(t, v.get(http.StatusOK, "users?id=1011"), "No send of this user is recorded")
}

func TestAUserWithoutAnAuditAndWithoutRights(t *testing.T) {
	t.Parallel()
	s := browsertest.Serve(t, browsertest.Setup{Keys: true, Without: "audit: {to: audit} "})
	v := visit(t, s)
	v.signIn(browsertest.Reader)
	page := v.get(http.StatusOK, "users?id=7")
	require.Contains(t, page, "The audit is off")
	require.Contains(t, page, "needs the scope")
	status, page := v.post("try", "users?id=7", url.Values{"again": {"7"}})
	require.Equal(t, http.StatusForbidden, status, page)
	require.Contains(t, page, "lacks the scope admin")
	require.Contains(t, v.get(http.StatusOK, "campaigns"), "No campaigns in this period")
	require.Contains(t, v.get(http.StatusOK, "try?audience=active&channel=push"), "Every user was decided")
}

func TestCampaignsAsTheyAre(t *testing.T) {
	t.Parallel()
	s := browsertest.Serve(t, browsertest.Setup{Audit: true})
	s.Samples()
	_, err := s.Client("").Filter(t.Context(), &client.FilterRequest{MessageID: hostile, Channel: "email",
		Users: []uint32{1, 2, 3}})
	require.NoError(t, err)
	v := visit(t, s)
	page := v.get(http.StatusOK, "campaigns?since=31d&sort=asked")
	for _, message := range []string{"welcome", "newsletter-11", "promo-7"} {
		require.Contains(t, page, "id="+message)
	}
	require.NotContains(t, page, "<script>alert")
	require.Contains(t, v.get(http.StatusOK, "campaigns?format=csv&table=campaigns"), "Message,Channel,Team,Asked")
	require.Contains(t, v.get(http.StatusBadRequest, "campaigns?channel=fax"), "no channel of this name")
	require.Contains(t, v.get(http.StatusBadRequest, "campaigns?least=many"), "is not a number")
	require.Contains(t, v.get(http.StatusBadRequest, "campaigns?since=1x"), "no such period")
	v.get(http.StatusBadRequest, "campaigns?cursor=x")
	page = v.get(http.StatusOK, "campaigns?since=31d&id=LETTER&least=100&channel=email&sort=asked")
	require.Contains(t, page, "id=newsletter-11")
	require.NotContains(t, page, "id=spring")
	require.Contains(t, page, `value="LETTER"`)
	require.NotContains(t, page, "Next page")

	page = v.get(http.StatusOK, "campaign?id=promo-7")
	require.Contains(t, page, "From asked to sent")
	require.Contains(t, page, "1,430")
	require.Contains(t, v.get(http.StatusOK, "campaign?format=svg&id=promo-7&picture=funnel&theme=light"), "<svg")
	page = v.get(http.StatusOK, "campaign?"+url.Values{"id": {hostile}}.Encode())
	require.Contains(t, page, "Campaign &#34;&gt;&lt;script&gt;")
	require.Contains(t, v.get(http.StatusNotFound, "campaign?id=nobody"), "This message has no counts")
	v.get(http.StatusNotFound, "campaign")
	v.get(http.StatusNotFound, "campaign?id=promo-7&channel=sms")
}

// ids returns the users from a first one on.
func ids(first, n uint32) (users []uint32) {
	for i := range n {
		users = append(users, first+i)
	}
	return users
}

// requireTitles gives wave-demo a title, which every page then shows first.
func requireTitles(t *testing.T, s *browsertest.Service, v *visitor) {
	t.Helper()
	require.NotContains(t, v.get(http.StatusOK, "campaigns"), ">Title<")
	for id, title := range map[string]string{"wave-demo": `Spring <b>"sale"`, "no-calls": "Later"} {
		_, err := s.Client("").SetTitle(t.Context(), id, "", title)
		require.NoError(t, err)
	}
	shown := html.EscapeString(`Spring <b>"sale"`)
	page := v.get(http.StatusOK, "campaign?id=wave-demo&channel=push")
	require.Contains(t, page, "<h1>Campaign "+shown+"</h1>")
	require.Contains(t, page, "message id <code>wave-demo</code>")
	page = v.get(http.StatusOK, "campaigns?id=SPRING")
	require.Contains(t, page, ">"+shown+"</a>")
	require.NotContains(t, page, "solo-13")
	table := v.get(http.StatusOK, "campaigns?format=csv&table=campaigns")
	require.Contains(t, table, "Title,Message,Channel,")
	require.Contains(t, table, "wave-demo,push,")
	require.Contains(t, table, "solo-13,solo-13,push,", "a campaign without a title has its id")
	for _, at := range []string{"campaign?id=no-calls", "campaign?id=no-calls&channel=push"} {
		page = v.get(http.StatusOK, at)
		require.Contains(t, page, "<h1>Campaign Later</h1>")
		require.Contains(t, page, "<title>Campaign Later")
		require.Contains(t, page, "This message is planned: it has a title and no calls yet.")
		require.Contains(t, page, "Message id <code>no-calls</code>")
		require.NotContains(t, page, "Not found")
		require.NotContains(t, page, "<table")
	}
	v.get(http.StatusNotFound, "campaign?id=no-calls&format=csv&table=funnel")
	page = v.get(http.StatusOK, "pressure")
	require.Contains(t, page, ">"+shown+"</a> <small>wave-demo</small>")
	require.Contains(t, v.get(http.StatusOK, "pressure?format=csv&table=campaigns"), "\nwave-demo,push,")
	page = v.get(http.StatusOK, "users?id=700120&message="+url.QueryEscape(`SPRING <B>"SALE"`))
	require.Contains(t, page, `<td><a href="/console/campaign?id=wave-demo" dir="auto">`+shown+
		"</a> <small>wave-demo</small></td>")
	require.Contains(t, page, "the send was allowed", "why not a message, by its title")
	for _, named := range []string{"wave-demo", `SPRING <B>"SALE"`, "no-calls"} {
		page = v.get(http.StatusOK, "users?id=999999&message="+url.QueryEscape(named))
		require.Contains(t, page, "Never asked for", named)
		require.NotContains(t, page, "No such message", named)
	}
	page = v.get(http.StatusOK, "users?id=999999&message=wave-dem")
	require.Contains(t, page, "no message of the last 31 days has this id or title")
	require.NotContains(t, page, "Never asked for")
	page = v.get(http.StatusOK, "users?id=700050")
	require.Contains(t, page, ">yesterday</a></td>", "a message without a title")
	require.Contains(t, page, "</a> <small>wave-demo</small></td>", "of a decision")
	for _, table := range []string{"sends", "decisions"} {
		require.Contains(t, v.get(http.StatusOK, "users?id=700120&format=csv&table="+table), ",wave-demo,")
	}
}

// TestACampaignCountsPeople repeats a campaign for those who were held back, as engines do.
func TestACampaignCountsPeople(t *testing.T) {
	t.Parallel()
	for _, audit := range []bool{true, false} {
		without := ""
		if !audit {
			without = "audit: {to: audit} "
		}
		s := browsertest.Serve(t, browsertest.Setup{Audit: audit, Without: without})
		send := func(message string, users []uint32) {
			_, err := s.Client("").Filter(t.Context(), &client.FilterRequest{MessageID: message, Channel: "push",
				Users: users})
			require.NoError(t, err)
		}
		send("yesterday", ids(700_000, 100))
		send("wave-demo", ids(700_000, 200))
		for range 9 {
			send("wave-demo", ids(700_000, 100))
		}
		v := visit(t, s)
		page := v.get(http.StatusOK, "campaign?id=wave-demo&channel=push")
		if !audit {
			require.Contains(t, page, "From asked to sent: answers, not people")
			require.Contains(t, page, "A user in two calls counts twice: without an audit, this page counts answers")
			require.Contains(t, page, "100 sends on push were recorded, in 10 calls that asked for 1,100 users")
			require.NotContains(t, page, "100 of 200")
			require.Contains(t, v.get(http.StatusOK, "campaign?id=wave-demo&channel=push&format=csv&table=segments"),
				"default,1100,100,1000,")
			continue
		}
		require.Contains(t, page, "<b>This message was sent on push to 100 of 200 users (50 %); 100 were at the "+
			"limit daily.</b>")
		require.NotContains(t, page, "not people")
		funnel := v.get(http.StatusOK, "campaign?id=wave-demo&channel=push&format=csv&table=funnel")
		require.Contains(t, funnel, "asked,200,100,")
		require.Contains(t, funnel, "within limits,100,50,")
		require.Contains(t, v.get(http.StatusOK, "campaign?id=wave-demo&channel=push&format=csv&table=answers"),
			"asked,1100,100")
		require.Contains(t, page, "By segment of today")
		require.Contains(t, v.get(http.StatusOK, "campaign?id=wave-demo&channel=push&format=csv&table=segments"),
			"default,200,100,100,0,0,50")
		_, err := s.Client("").Release(t.Context(), &client.ReleaseRequest{MessageID: "wave-demo", Channel: "push",
			Users: ids(700_150, 10)})
		require.NoError(t, err)
		require.Contains(t, v.get(http.StatusOK, "campaign?id=wave-demo"),
			"<b>This message was sent on push to 90 of 200 users (45 %); 100 were at the limit daily; 10 were "+
				"allowed, and the send was given back.</b>")

		send("solo-13", []uint32{13}) // the only user opted out
		require.Contains(t, v.get(http.StatusOK, "campaign?id=solo-13&channel=push"),
			"<b>This message was sent on push to 0 of 1 user (0 %); 1 was suppressed.</b>")
		require.Contains(t, v.get(http.StatusOK, "campaigns"), "id=solo-13")
		requireTitles(t, s, v)
	}
}

// TestTheUserPageLinksToOpenCampaigns checks that a key with a namespace gets no links to campaigns of others, which it
// may not open.
func TestTheUserPageLinksToOpenCampaigns(t *testing.T) {
	t.Parallel()
	s := browsertest.Serve(t, browsertest.Setup{Keys: true})
	_, err := s.Client(browsertest.Engine).Filter(t.Context(), &client.FilterRequest{MessageID: "of-all",
		Channel: "push", Users: ids(700_000, 100)})
	require.NoError(t, err)
	v := visit(t, s)
	v.signIn(browsertest.Partner)
	page := v.get(http.StatusOK, "users?id=700000")
	require.Contains(t, page, "of-all")
	require.NotContains(t, page, "campaign?id=of-all")
	v = visit(t, s)
	v.signIn(browsertest.Reader)
	require.Contains(t, v.get(http.StatusOK, "users?id=700000"), "campaign?id=of-all")
}

func TestSegmentsAndWhatChanged(t *testing.T) {
	t.Parallel()
	s := browsertest.Serve(t, browsertest.Setup{})
	s.Samples()
	v := visit(t, s)
	page := v.get(http.StatusOK, "segments")
	for _, said := range []string{"is in use", "opted-out", "suppression", "tz/Asia/Jakarta",
		"in use here and live", "with segmentbuild sample"} {
		require.Contains(t, page, said)
	}
	require.NotContains(t, page, "segmentbuild segmentbuild")
	page = v.get(http.StatusOK, "segments/changes")
	require.Contains(t, page, "7 users joined a segment for the first time")
	require.Contains(t, v.get(http.StatusOK, "segments/changes?format=csv&table=segments"),
		"active,changed,900,907,7,0")
	require.Contains(t, v.get(http.StatusNotFound, "segments/changes?from=a&to=b"),
		"One of these generations does not exist")
}

func TestAnAudienceIsTried(t *testing.T) {
	t.Parallel()
	s := browsertest.Serve(t, browsertest.Setup{})
	s.Samples()
	v := visit(t, s)
	const tried = "try?audience=active+-+opted-out&channel=push"
	page := v.get(http.StatusOK, tried)
	require.Contains(t, page, " of 864")
	require.Contains(t, page, "Nothing was recorded.")
	require.Contains(t, v.get(http.StatusOK, tried+"&format=csv&table=days"), "From,May receive")
	require.Contains(t, v.get(http.StatusOK, tried+"&format=svg&picture=days"), "<svg")
	require.Contains(t, v.get(http.StatusBadRequest, "try?audience=active+%26+%26+vip"), `<small>column 10</small>`)
	v.get(http.StatusBadRequest, "try?audience=%3Cscript%3Ealert(1)%3C/script%3E")
	require.Contains(t, v.get(http.StatusOK, "try?audience=vip+-+vip"), "0 of 0")
	v.get(http.StatusBadRequest, "try?audience=vip&channel=fax")
	require.Contains(t, v.get(http.StatusGone, "try?result=nobody"), "send the ids again")

	status, page := v.post("try", "try", url.Values{"ids": {"1, 2;3\n3 42"}, "channel": {"email"}})
	require.Equal(t, http.StatusOK, status, page)
	require.Contains(t, page, " of 4<")
	require.Contains(t, page, "1 ids were given more than once")
	status, page = v.post("try", "try", url.Values{"ids": {"1\n2\nx<y"}})
	require.Equal(t, http.StatusBadRequest, status)
	require.Contains(t, page, "Line 3: &#34;x&lt;y&#34; is not a user id")
	status, _ = v.post("try", "try", url.Values{"ids": {" \n"}})
	require.Equal(t, http.StatusBadRequest, status)

	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	require.NoError(t, w.WriteField("token", token.FindStringSubmatch(v.get(http.StatusOK, "try"))[1]))
	file, err := w.CreateFormFile("file", `<b>"ids".csv`)
	require.NoError(t, err)
	_, err = file.Write([]byte("7\r\n8\r\n9\r\n"))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	status, page = v.do(http.MethodPost, "try", w.FormDataContentType(), &form)
	require.Equal(t, http.StatusOK, status, page)
	require.Contains(t, page, " of 3<")
	require.NotContains(t, page, "<b>&#34;ids")
}
