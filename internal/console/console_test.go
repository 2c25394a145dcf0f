package console_test

import (
	"encoding/csv"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
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
	require.Contains(t, empty, "This instance decided no user in the last day")
	require.NotContains(t, empty, "<img")
	s.recent.Observe(startOfTest.Add(time.Second), console.Totals{
		{Kind: console.Allowed}: 1_200_000, {Kind: console.Denied, Of: "daily"}: 3000,
		{Kind: console.Denied, Of: "suppressed"}: 20, {Kind: console.Shadow, Of: "strict"}: 600_000,
	})
	s.recent.Observe(startOfTest.Add(12*time.Second), console.Totals{})
	page := s.get("/console/")
	require.Contains(t, page.body, "<dd>1,200,000</dd>")
	require.Contains(t, page.body,
		`alt="Users decided a second over the last hour, by outcome. 1,200,000 allowed, 3,000 held back by daily and 20 held back by suppression.`)
	table := s.csv(t, "/console/?format=csv&table=decided")
	require.Equal(t, []string{"Outcome", "Means", "Last hour", "Last day", "Of the day"}, table[0])
	require.Equal(t, []string{"allowed", "1200000", "1200000"}, []string{table[1][0], table[1][2], table[1][3]})
	require.Equal(t, "held back by daily", table[2][0])
	for _, at := range regexp.MustCompile(`(?:src|srcset)="([^"]*format=svg[^"]*)"`).FindAllStringSubmatch(page.body,
		-1) {
		picture := s.get(strings.ReplaceAll(at[1], "&amp;", "&"))
		require.Equal(t, http.StatusOK, picture.status)
		require.Equal(t, "image/svg+xml", picture.header.Get("Content-Type"))
		require.True(t, strings.HasPrefix(picture.body, "<svg"))
	}
	limits := s.get("/console/limits").body
	require.Contains(t, limits, "at most 2 sends in any 24 hours, all channels")
	require.Equal(t, []string{"strict", "new", "at most 1 send in any hour, all channels", "600000", "600000", "50"},
		s.csv(t, "/console/limits?format=csv&table=shadow")[1])
	require.Equal(t, http.StatusNotFound, s.get("/console/?format=csv&table=none").status)
	require.Equal(t, http.StatusNotFound, s.get("/console/?format=svg&picture=none").status)
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
