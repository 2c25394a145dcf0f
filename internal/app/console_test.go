package app

import (
	"io"
	"net/http"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/testkit"
)

// see returns the status and content of a page of the endpoint.
func see(t *testing.T, s *Service, endpoint int, path string) (status int, page string) {
	t.Helper()
	answer, err := http.Get("http://" + s.endpoints[endpoint].listener.Addr().String() + path)
	require.NoError(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return answer.StatusCode, string(text)
}

// TestTheConsoleFollowsTheService checks that every listener that serves reads has a console with the
// decisions.
func TestTheConsoleFollowsTheService(t *testing.T) {
	t.Parallel()
	cfg, _ := configure(t, onEmbedded(t.TempDir()), `admin_listen: "127.0.0.1:0"`)
	s := begin(t, cfg)
	for endpoint := range s.endpoints {
		for _, path := range []string{"/console/", "/"} { // the root leads browsers to the console
			status, page := see(t, s, endpoint, path)
			require.Equal(t, http.StatusOK, status)
			require.Contains(t, page, "the service is ready for calls.")
		}
	}
	head, err := http.Head("http://" + s.endpoints[0].listener.Addr().String())
	require.NoError(t, err)
	require.NoError(t, head.Body.Close())
	require.Equal(t, []any{http.StatusOK, "/console/"}, []any{head.StatusCode, head.Request.URL.Path})
	for _, message := range []string{"a", "b"} {
		_, err := filter(t.Context(), s, message, 1, 2, 3)
		require.NoError(t, err)
	}
	testkit.Eventually(t, func() bool {
		_, csv := see(t, s, 0, "/console/?format=csv&table=decided")
		return csv == "Outcome,Users,Of all,They\r\nallowed,3,50,may receive the message; the send is recorded\r\n"+
			"held back by daily,3,50,had reached this limit\r\n"
	}, "the decisions are not seen")
}

func TestTheLimitsPageTellsOfReloads(t *testing.T) {
	t.Parallel()
	w := configureSets(t, onEmbedded(t.TempDir()))
	w.publish(nil)
	w.configure("")
	w.start(t)
	w.configure("holdout: {percent: 5, salt: autumn}\n")
	testkit.Eventually(t, func() bool {
		_, page := see(t, w.Service, 0, "/console/limits")
		return regexp.MustCompile(
			`(?s)<b>New:</b> Holdout: 5 % of all users receive nothing.*the oldest that is known`).MatchString(page)
	}, "the reload is not told")
}

// TestTheLimitsPageTellsOfVersionsInTheAudit checks that the page shows policies from the audit that are older than
// this instance.
func TestTheLimitsPageTellsOfVersionsInTheAudit(t *testing.T) {
	t.Parallel()
	w := configureSets(t, onEmbedded(t.TempDir()))
	w.publish(nil)
	audited := "audit: {to: " + t.TempDir() + ", roll: 1s}\n"
	w.configure(audited)
	w.start(t)
	_, err := filter(t.Context(), w.Service, "promo", 1, 2, 3)
	require.NoError(t, err)
	require.NoError(t, w.Stop())

	w.configure(audited + "holdout: {percent: 5, salt: autumn}\n")
	w.start(t)
	_, page := see(t, w.Service, 0, "/console/limits")
	require.Regexp(t, `(?s)<b>New:</b> Holdout: 5 % of all users receive nothing.*the oldest that is known, since`, page)
}

func TestTheConsoleIsTurnedOff(t *testing.T) {
	t.Parallel()
	w := configureSets(t, onEmbedded(t.TempDir()))
	w.publish(nil)
	w.configure("console: false\n")
	w.start(t)
	for _, path := range []string{"/console/", "/"} {
		status, page := see(t, w.Service, 0, path)
		require.Equal(t, http.StatusNotFound, status)
		require.Contains(t, page, "not_found")
	}

	w.configure("console: true\n")
	testkit.Eventually(t, func() bool { return w.status().Config.Error != "" }, "it changes at a start alone")
	require.Contains(t, w.status().Config.Error, "console: requires a restart; the configuration in force stays "+
		"(false, now true)")
}
