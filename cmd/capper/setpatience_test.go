package main

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A change of a set outlives a service that is away for longer than other calls wait. Each repetition is reported.
func TestAChangeOfASetIsRepeated(t *testing.T) {
	t.Parallel()
	const failures = 7 // other commands end after 5 attempts
	var calls atomic.Int64
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/v1/ids":
			w.WriteHeader(http.StatusNotFound)
		case calls.Add(1) <= failures:
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			_, err := w.Write([]byte(`{"added":1,"removed":0,"superseded":0,"at":"2026-11-22T15:31:09.120Z"}`))
			assert.NoError(t, err)
		}
	}))
	t.Cleanup(service.Close)
	out := capperOutput(t, 0, "set", "add", "stop", "7", "--url", service.URL)
	require.EqualValues(t, failures+1, calls.Load())
	require.Regexp(t, `the call is repeated in .*\n(?s:.*)added +1`, out)
}
