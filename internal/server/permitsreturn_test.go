package server_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/testkit"
)

// returns requires the exact text of an answer to POST /v1/permits/return.
func (s *service) returns(body, want string) {
	s.t.Helper()
	r := s.post("/v1/permits/return", body)
	require.Equal(s.t, http.StatusOK, r.status, string(r.body))
	require.Equal(s.t, strings.Join(strings.Fields(want), ""), strings.TrimSpace(string(r.body)))
}

// A cancelled campaign gives back its part of the day, at all pacers of the call, once.
func TestPermitsAreGivenBack(t *testing.T) {
	t.Parallel()
	s := newPaced(t)
	s.permits(`{"pacers":["twilio","carrier"],"permits":200,"max_wait":"5s","request_id":"r1"}`)
	require.Equal(t, "1", s.metric(`capper_pacer_used_ratio{pacer="twilio"}`))
	s.clock.Advance(100 * time.Millisecond)
	s.returns(`{"pacers":["carrier","twilio"],"permits":200,"max_wait":"5s","request_id":"r1","used":20}`, `
		{"returned":174,"kept":26,"remembered":true,
		 "pacers":[{"name":"carrier","returned":174},{"name":"twilio","returned":174}]}`)
	require.Equal(t, "0.26", s.metric(`capper_pacer_used_ratio{pacer="twilio"}`), "of 100 a second")
	require.Equal(t, "0", s.metric(`capper_pacer_queue_seconds{pacer="carrier"}`))
	again := s.permits(`{"pacers":["twilio","carrier"],"permits":200,"max_wait":"5s","request_id":"r1"}`)
	require.True(t, again.Replayed)
	require.Equal(t, [2]int{26, 174}, [2]int{again.Granted, again.Refused})
	s.returns(`{"pacers":["carrier","twilio"],"permits":200,"request_id":"r1"}`, `
		{"returned":0,"kept":26,"remembered":true,
		 "pacers":[{"name":"carrier","returned":0},{"name":"twilio","returned":0}]}`)
	require.Equal(t, 224, s.permits(`{"pacers":["twilio"],"permits":250,"max_wait":"10s"}`).Granted, "250 a day")
	s.returns(`{"pacers":["carrier"],"permits":1,"request_id":"unknown"}`, `
		{"returned":0,"kept":0,"remembered":false,"pacers":[{"name":"carrier","returned":0}]}`)
	metrics := string(s.get("/metrics").body)
	for _, line := range []string{`capper_permits_returned_total{pacer="carrier"} 174`,
		`capper_permits_returned_total{pacer="twilio"} 174`, `capper_permits_returned_total{pacer="campaign"} 0`} {
		require.Contains(t, metrics, "\n"+line+"\n")
	}
	s.clock.Advance(time.Minute)
	require.Contains(t, string(s.get("/metrics").body), "\n"+`capper_permits_due_total{pacer="carrier"} 26`+"\n")
}

// TestReturnsAfterARestartKeepDuePermits gives back permits of an earlier process. The permits of the new process must
// still be counted when they are due.
func TestReturnsAfterARestartKeepDuePermits(t *testing.T) {
	t.Parallel()
	clock := testkit.NewClockAt(startOfTest)
	store := openStore(t, clock.Now)
	before := newServiceOver(t, store, clock, withPacers(t, store))
	require.Equal(t, 300, before.permits(`{"pacers":["carrier"],"permits":300,"max_wait":"5s","request_id":"r1"}`).Granted)
	s := newServiceOver(t, store, clock, withPacers(t, store))
	s.returns(`{"pacers":["carrier"],"permits":300,"max_wait":"5s","request_id":"r1"}`,
		`{"returned":299,"kept":1,"remembered":true,"pacers":[{"name":"carrier","returned":299}]}`)
	require.Equal(t, 50, s.permits(`{"pacers":["carrier"],"permits":50,"max_wait":"5s"}`).Granted)
	clock.Advance(10 * time.Second)
	require.Equal(t, "50", s.metric(`capper_permits_due_total{pacer="carrier"}`))
}

// A call for a message gives back the slots of that message alone.
func TestPermitsOfAMessageAreGivenBack(t *testing.T) {
	t.Parallel()
	s := newPaced(t)
	for _, message := range []string{"a", "b"} {
		s.permits(`{"pacers":["campaign"],"permits":600,"max_wait":"1h","request_id":"r` + message +
			`","message_id":"` + message + `"}`)
	}
	s.returns(`{"pacers":["campaign"],"permits":600,"max_wait":"1h","request_id":"ra","message_id":"a"}`,
		`{"returned":300,"kept":300,"remembered":true,"pacers":[{"name":"campaign","returned":300}]}`)
	ask := func(message string) int {
		return s.permits(`{"pacers":["campaign"],"permits":900,"max_wait":"90s","message_id":"` +
			message + `"}`).Granted
	}
	require.Equal(t, []int{300, 0}, []int{ask("a"), ask("b")})
}

func TestFaultyReturnsAreRefused(t *testing.T) {
	t.Parallel()
	s := newPaced(t)
	s.permits(`{"pacers":["carrier"],"permits":20,"max_wait":"5s","request_id":"r1"}`)
	for body, want := range map[string]string{
		`{"pacers":["carrier"],"permits":20}`:                                          "request_id: is required",
		`{"pacers":["carrier"],"permits":0,"request_id":"r1"}`:                         "permits: must be the number",
		`{"permits":20,"request_id":"r1"}`:                                             "pacers: is required",
		`{"pacers":["carrier"],"request_id":"r1"}`:                                     "permits: is required",
		`{"pacers":["carrier"],"permits":20,"request_id":"r1","used":-1}`:              "used: -1 is not a number",
		`{"pacers":["carrier"],"permits":20,"request_id":"r1","used":1.5}`:             "used: 1.5 is not a number",
		`{"pacers":["carrier"],"permits":20,"request_id":"r1","kept":1}`:               `kept`,
		`{"pacers":["carrier"],"permits":21,"request_id":"r1"}`:                        `was used by an`,
		`{"pacers":["twilio"],"permits":20,"request_id":"r1"}`:                         `was used by an`,
		`{"pacers":["nobody"],"permits":20,"request_id":"r1"}`:                         "must be a configured pacer",
		`{"pacers":["carrier","campaign"],"permits":20,"request_id":"r1","used":1}`:    "message_id: is required",
		`{"pacers":["carrier"],"permits":20,"request_id":"r1","used":1,"used":2}`:      "used",
		`{"pacers":["carrier"],"permits":20,"request_id":"r1","max_wait":"25h"}`:       "max_wait: must be",
		`{"pacers":["carrier"],"permits":20,"request_id":"r1","used":100001}`:          "used: 100001 is not",
		`{"pacers":["carrier"],"permits":20,"request_id":"r1","used":21}`:              "used: must be at most the permits",
		`{"pacers":["carrier"],"permits":20,"request_id":"r1","used":1,"record":true}`: "record",
	} {
		r := s.post("/v1/permits/return", body)
		require.Equal(t, http.StatusBadRequest, r.status, body)
		require.Contains(t, string(r.body), want, body)
	}
	s.returns(`{"pacers":["carrier"],"permits":20,"request_id":"r1"}`,
		`{"returned":19,"kept":1,"remembered":true,"pacers":[{"name":"carrier","returned":19}]}`)
}
