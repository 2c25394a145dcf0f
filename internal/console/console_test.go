package console_test

import (
	"encoding/csv"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/console"
	"capper/internal/server/gate"
)

func TestEveryAnswerIsProtected(t *testing.T) {
	t.Parallel()
	s := newService(t, keys())
	paths := append([]string{"/console", "/console/sign-in", "/console/nowhere", "/console/assets/none.css",
		"/console/limits?format=csv&table=limits", "/console/?format=svg&picture=day"}, addresses...)
	for range 2 {
		for _, path := range paths {
			h := s.get(path).header
			require.Equal(t, "nosniff", h.Get("X-Content-Type-Options"), path)
			require.Equal(t, "no-referrer", h.Get("Referrer-Policy"), path)
			require.Equal(t, "no-store", h.Get("Cache-Control"), path)
			require.Contains(t, h.Get("Content-Security-Policy"), "default-src 'none'", path)
			require.Contains(t, h.Get("Content-Security-Policy"), "frame-ancestors 'none'", path)
			require.Empty(t, h.Get("Access-Control-Allow-Origin"), path)
		}
		if len(s.jar) == 1 { // the form's
			s.signIn(reader, "")
		}
	}
	require.Equal(t, "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "+
		"form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
		s.get("/console/").header.Get("Content-Security-Policy"))
}

func TestPagesHoldNothingThatThePolicyForbids(t *testing.T) {
	t.Parallel()
	s := newService(t, keys())
	s.signIn(reader, "")
	inline := regexp.MustCompile(
		`(?i)<style|\sstyle=|\son[a-z]+=|javascript:|<script>|(src|href|action|srcset)="(https?:)?//`)
	for _, path := range append([]string{"/console/nowhere"}, addresses...) {
		page := s.get(path)
		require.NotRegexp(t, inline, page.body, path)
		require.Equal(t, 1, strings.Count(page.body, "<h1>"), path)
		require.Contains(t, page.body, `<html lang="en">`)
		require.Contains(t, page.body, `<a class="skip" href="#main">`)
	}
	require.Contains(t, s.get("/console/limits").body, `<a href="/console/limits" aria-current="page">Limits</a>`)
}

func TestAssetsAreKept(t *testing.T) {
	t.Parallel()
	s := newService(t, keys())
	names := regexp.MustCompile(`/console/assets/[a-z]+-[0-9a-f]{10}\.[a-z]+`).FindAllString(
		s.get("/console/sign-in").body, -1)
	require.Len(t, names, 3)
	for _, name := range names {
		asset := s.get(name)
		require.Equal(t, http.StatusOK, asset.status, name)
		require.Equal(t, "public, max-age=31536000, immutable", asset.header.Get("Cache-Control"))
	}
	require.Equal(t, http.StatusNotFound, s.get("/console/assets/layout.html").status)
	require.Equal(t, http.StatusNotFound, s.get("/console/assets/style.css").status, "by its served name alone")
}

func TestMethods(t *testing.T) {
	t.Parallel()
	s := newService(t, keys())
	s.signIn(reader, "")
	for _, path := range silent {
		head := s.do(http.MethodHead, path, nil)
		require.Equal(t, http.StatusOK, head.status)
		require.Empty(t, head.body)
		for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch,
			http.MethodOptions} {
			require.Equal(t, http.StatusMethodNotAllowed, s.do(method, path, nil).status, "%s %s", method, path)
		}
	}
	require.Equal(t, http.StatusMethodNotAllowed, s.do(http.MethodDelete, "/console/sign-in", nil).status)
	require.Equal(t, http.StatusNotFound, s.get("/consoles").status)
	require.Contains(t, s.get("/consoles").body, `"code":"not_found"`, "what is not the console's is the API's")
}

func TestTheDoorInsideIsClosedToTheNetwork(t *testing.T) {
	t.Parallel()
	s := newService(t, keys())
	s.signIn(admin, "")
	require.Equal(t, http.StatusUnauthorized, s.get("/v1/status").status, "a session is no key")
	require.Equal(t, http.StatusUnauthorized, s.do(http.MethodDelete, "/v1/users/7", nil).status)
	s.header.Set("X-Request-Id", "mine")
	require.Equal(t, "mine", s.get("/console/").header.Get("X-Request-Id"))
}

func TestTheOverviewSaysWhatWasDecided(t *testing.T) {
	t.Parallel()
	s := newService(t, gate.Rules{})
	empty := s.get("/console/").body
	require.Contains(t, empty, "No user was decided in the last 24 hours")
	require.NotContains(t, empty, "<img")
	s.filter(1, 10) // a week before
	s.clock.Advance(7 * 24 * time.Hour)
	s.filter(1, 20)
	s.clock.Advance(90 * time.Minute)
	s.filter(1, 30)
	s.filter(1, 30) // which reach the limit of two
	page := s.get("/console/")
	require.Contains(t, page.body, "Everything works.")
	require.Contains(t, page.body, "60 sends were allowed in the last 24 hours, 500 % more than in the same hours a "+
		"week before. 20 users were held back, 100 % by daily.")
	require.Contains(t, page.body, "The last 24 hours, by hour: 60 sends allowed and 20 users held back.")
	require.Contains(t, page.body, "Sends by hour: 60 sends now and 10 in the same hours a week before.")
	require.Contains(t, page.body, "The last hour, by five minutes: 40 sends allowed and 20 users held back.")
	require.Equal(t, [][]string{{"Outcome", "Users", "Of all", "They"},
		{"allowed", "60", "75", "may receive the message; the send is recorded"},
		{"held back by daily", "20", "25", "had reached this limit"}},
		s.csv(t, "/console/?format=csv&table=decided"))
	hours := s.csv(t, "/console/?format=csv&table=hours")[1:]
	require.Len(t, hours, 24)
	sums := make([]int, 5)
	for _, hour := range hours {
		for i, text := range hour[1:] {
			n, err := strconv.Atoi(text)
			require.NoError(t, err)
			sums[i] += n
		}
	}
	require.Equal(t, []int{80, 60, 20, 10, 0}, sums, "the bars add up")
	pictures := regexp.MustCompile(`(?:src|srcset)="([^"]*format=svg[^"]*)"`).FindAllStringSubmatch(page.body, -1)
	require.Len(t, pictures, 12, "three, in two colours, and for phones")
	for _, at := range pictures {
		picture := s.get(strings.ReplaceAll(at[1], "&amp;", "&"))
		require.Equal(t, http.StatusOK, picture.status)
		require.Equal(t, "image/svg+xml", picture.header.Get("Content-Type"))
		require.True(t, strings.HasPrefix(picture.body, "<svg"))
	}
	require.Equal(t, http.StatusNotFound, s.get("/console/?format=csv&table=none").status)
	require.Equal(t, http.StatusNotFound, s.get("/console/?format=svg&picture=none").status)
}

// filter records a message on push to the users from first to last.
func (s *service) filter(first, last int) {
	s.t.Helper()
	s.sent++
	users := make([]string, 0, last)
	for user := first; user <= last; user++ {
		users = append(users, strconv.Itoa(user))
	}
	answer, err := http.Post(s.url+"/v1/filter", "application/json", strings.NewReader(fmt.Sprintf(
		`{"message_id":"m%d","channel":"push","user_ids":[%s]}`, s.sent, strings.Join(users, ","))))
	require.NoError(s.t, err)
	require.NoError(s.t, answer.Body.Close())
	require.Equal(s.t, http.StatusOK, answer.StatusCode)
}

func TestShadowLimitsAreCounted(t *testing.T) {
	t.Parallel()
	s := newService(t, gate.Rules{})
	s.recent.Observe(startOfTest.Add(time.Second), console.Totals{
		{Kind: console.Allowed}: 1_200_000, {Kind: console.Shadow, Of: "strict"}: 600_000,
	})
	s.recent.Observe(startOfTest.Add(12*time.Second), console.Totals{})
	limits := s.get("/console/limits").body
	require.Contains(t, limits, "at most 2 sends in any 24 hours, all channels")
	require.Equal(t, []string{"strict", "new", "at most 1 send in any hour, all channels", "600000", "600000", "50"},
		s.csv(t, "/console/limits?format=csv&table=shadow")[1])
}

func (s *service) csv(t *testing.T, path string) [][]string {
	t.Helper()
	answer := s.get(path)
	require.Equal(t, http.StatusOK, answer.status, answer.body)
	require.Equal(t, "text/csv; charset=utf-8", answer.header.Get("Content-Type"))
	rows, err := csv.NewReader(strings.NewReader(answer.body)).ReadAll()
	require.NoError(t, err)
	return rows
}

func TestWhatIsMissingIsSaid(t *testing.T) {
	t.Parallel()
	_, err := console.New(console.Config{})
	require.ErrorContains(t, err, "Config.API")
}

// TestItIsSmall checks the size of the embedded files: all files that are not Go code.
func TestItIsSmall(t *testing.T) {
	t.Parallel()
	total := int64(0)
	require.NoError(t, filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasSuffix(path, ".go") || strings.Contains(path, "browsertest") {
			return err
		}
		info, err := os.Stat(path)
		total += info.Size()
		return err
	}))
	require.Positive(t, total)
	require.LessOrEqual(t, total, int64(400_000))
	t.Logf("%d bytes", total)
}

// TestThePageOfPressureAsksForAnAudit checks that the page without an audit says how to get one.
func TestThePageOfPressureAsksForAnAudit(t *testing.T) {
	t.Parallel()
	page := newService(t, gate.Rules{}).get("/console/pressure?weeks=13&channel=push")
	require.Equal(t, http.StatusOK, page.status, page.body)
	require.Contains(t, page.body, "This service records no audit")
}
