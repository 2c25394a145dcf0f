package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/pacing"
	"capper/internal/server/gate"
)

// TestAPacerIsLookedUpForAMessageOrKey checks the form of the page about pacers, with an API key that may only read.
func TestAPacerIsLookedUpForAMessageOrKey(t *testing.T) {
	t.Parallel()
	s := newService(t, keys())
	s.permits(filterer, `{"pacers":["number"],"permits":3,"key":"+65 1","max_wait":"30s"}`)
	s.permits(filterer, `{"pacers":["campaign"],"permits":7,"message_id":"promo"}`)
	s.signIn(reader, "")
	look := func(pacer, log string) reply {
		return s.get("/console/pacers?pacer=" + pacer + "&log=" + url.QueryEscape(log))
	}
	page := s.get("/console/pacers")
	require.Contains(t, page.body, `<option>number</option><option>campaign</option>`)
	require.NotContains(t, page.body, `id="table-log"`)

	page = look("number", "+65 1")
	require.Equal(t, http.StatusOK, page.status)
	require.Contains(t, page.body, `<option selected>number</option>`)
	require.Contains(t, page.body, `State of the pacer number for &#43;65 1`)
	require.Contains(t, page.body, `/v1/pacers/number?key=%2B65&#43;1`)
	csv := s.csv(t, "/console/pacers?pacer=number&log=%2B65+1&format=csv&table=log")
	require.Equal(t, [][]string{{"1h", "3", "40", "2", "3", "busy: the next permit waits 3 seconds"},
		{"rate", "", "1/s", "2", "3", "busy: the next permit waits 3 seconds"}}, csv[1:])

	csv = s.csv(t, "/console/pacers?pacer=campaign&log=promo&format=csv&table=log")
	require.Equal(t, [][]string{{"1h", "7", "50", "0", "0", "free: the next permit needs no wait"}}, csv[1:])
	require.Contains(t, look("campaign", "promo").body, `/v1/pacers/campaign?message_id=promo`)
	require.Contains(t, look("campaign", "other").body, `free: the next permit needs no wait`)

	for _, pacer := range []string{"carrier", "none", "", "<b>"} {
		page = look(url.QueryEscape(pacer), "x")
		require.Equal(t, http.StatusBadRequest, page.status)
		require.Contains(t, page.body, `is no pacer that counts each message or key separately.`)
		require.NotContains(t, page.body, `<b>&#34;`)
	}
	require.Contains(t, look("number", "a\u202eb").body, `State of the pacer number for a[U&#43;202E]b`)
	page = look("number", strings.Repeat("x", 129))
	require.Equal(t, http.StatusBadRequest, page.status)
	require.Contains(t, page.body, `has 129 bytes and must have 1 to 128`)
}

// TestPacersWithoutLogsHaveNoForm checks that the form is absent if no pacer counts messages or keys separately.
func TestPacersWithoutLogsHaveNoForm(t *testing.T) {
	t.Parallel()
	s := newService(t, gate.Rules{})
	require.Contains(t, s.get("/console/pacers").body, `<form class="fields"`)
	s.pacers.SetPolicy(&pacing.Policy{Version: "policy-1", Pacers: pacers.Pacers[:1]})
	require.NotContains(t, s.get("/console/pacers").body, `<form class="fields"`)
}
