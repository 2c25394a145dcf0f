package publish

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"capper/internal/objects"
	"capper/internal/objects/objectstest"
	"capper/internal/objects/s3test"
	"capper/internal/segments"
	"capper/internal/testkit"

	"github.com/stretchr/testify/require"
)

// inFrontOfS3 forwards requests to the S3 server, except those that odd answers itself by returning
// true.
func inFrontOfS3(t *testing.T, odd func(w http.ResponseWriter, r *http.Request, pass http.Handler) bool) (
	endpoint string) {
	t.Helper()
	return s3test.Proxy(t, func(server http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !odd(w, r, server) {
				server.ServeHTTP(w, r)
			}
		})
	})
}

func s3Error(w http.ResponseWriter, status int, code string) bool {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	_, _ = w.Write([]byte("<Error><Code>" + code + "</Code><Message>x</Message></Error>"))
	return true
}

func hangUp(w http.ResponseWriter) bool {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		_ = conn.(*net.TCPConn).SetLinger(0)
		_ = conn.Close()
	}
	return true
}

func publishThrough(t *testing.T, location string, cfg objects.S3Config, timeout time.Duration) error {
	t.Helper()
	store, err := objects.Open(t.Context(), location, cfg)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	base, err := ReadLiveState(ctx, store)
	if err != nil {
		return err
	}
	p := Publisher{Location: store, ToolVersion: "test"}
	_, err = p.Publish(ctx, doomedCandidate(1), base, "")
	return err
}

// TestAPatientPublishOutlastsTheFaultsOfAServer causes more consecutive faults than the SDK's three
// attempts.
func TestAPatientPublishOutlastsTheFaultsOfAServer(t *testing.T) {
	t.Parallel()
	const stalls = "it stalls"
	type response = http.ResponseWriter
	for name, fault := range map[string]func(w response, r *http.Request) bool{
		"503":   func(w response, _ *http.Request) bool { return s3Error(w, 503, "SlowDown") },
		"500":   func(w response, _ *http.Request) bool { return s3Error(w, 500, "InternalError") },
		"429":   func(w response, _ *http.Request) bool { return s3Error(w, 429, "TooManyRequests") },
		"409":   func(w response, _ *http.Request) bool { return s3Error(w, 409, "ConditionalRequestConflict") },
		"reset": func(w response, _ *http.Request) bool { return hangUp(w) },
		stalls: func(_ response, r *http.Request) bool {
			_, _ = io.Copy(io.Discard, r.Body) // only then does the server see that the caller has gone
			<-r.Context().Done()
			return true
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var told, gets, puts atomic.Int64
			endpoint := inFrontOfS3(t, func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
				n := &gets
				if r.Method == http.MethodPut {
					n = &puts
				}
				return strings.HasSuffix(r.URL.Path, segments.CurrentKey) && n.Add(1) <= 4 && fault(w, r)
			})
			location := "s3://" + s3test.Bucket(t) + "/prod"
			cfg := objects.S3Config{Endpoint: endpoint, Patient: true, MaxPause: 50 * time.Millisecond,
				Stall: time.Minute, Retrying: func(error) { told.Add(1) }}
			if name == stalls {
				cfg.Stall = 200 * time.Millisecond
			}
			require.NoError(t, publishThrough(t, location, cfg, 5*time.Minute))
			require.GreaterOrEqual(t, told.Load(), int64(8))
			if name != stalls { // where a busy server may stall by itself
				require.EqualValues(t, 8, told.Load())
			}
			live(t, objectstest.Open(t, location))
		})
	}
}

func TestRetriesEndWithTheContextAndSayWhy(t *testing.T) {
	t.Parallel()
	endpoint := inFrontOfS3(t, func(w http.ResponseWriter, _ *http.Request, _ http.Handler) bool {
		return s3Error(w,
			503, "SlowDown")
	})
	began := time.Now()
	location := "s3://" + s3test.Bucket(t) + "/prod"
	testkit.FailsWith(t, "SlowDown", func() error { // on a busy machine the end may come before any answer
		return publishThrough(t, location, objects.S3Config{Endpoint: endpoint, Patient: true, MaxPause: time.Second},
			3*time.Second)
	})
	require.Greater(t, time.Since(began), 2*time.Second, "it tries until the end")
}

// TestALostAnswerIsLookedInto drops the response to the PUT of current.json: with a retry, without
// one, and after the publisher's time has ended.
func TestALostAnswerIsLookedInto(t *testing.T) {
	t.Parallel()
	for name, patient := range map[string]bool{"the retry finds its own success": true,
		"nobody answers any more": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var lost atomic.Int64
			endpoint := inFrontOfS3(t, func(w http.ResponseWriter, r *http.Request, pass http.Handler) bool {
				if r.Method != http.MethodPut || !strings.HasSuffix(r.URL.Path, segments.CurrentKey) {
					return false
				}
				if n := lost.Add(1); patient && n > 1 {
					return false
				}
				pass.ServeHTTP(httptest.NewRecorder(), r)
				return hangUp(w)
			})
			location := "s3://" + s3test.Bucket(t) + "/prod"
			require.NoError(t, publishThrough(t, location, objects.S3Config{Endpoint: endpoint, Patient: patient,
				MaxPause: 50 * time.Millisecond}, time.Minute))
			require.Positive(t, lost.Load())
			require.Equal(t, doomedCandidate(1).Describe(), live(t, objectstest.Open(t, location)).Manifest.Segments)
		})
	}
}

func TestAnAnswerThatCannotBeLookedIntoIsNotCalledAFailure(t *testing.T) {
	t.Parallel()
	var deaf atomic.Bool
	endpoint := inFrontOfS3(t, func(w http.ResponseWriter, r *http.Request, pass http.Handler) bool {
		if r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, segments.CurrentKey) {
			pass.ServeHTTP(httptest.NewRecorder(), r)
			deaf.Store(true)
		}
		return deaf.Load() && hangUp(w)
	})
	err := publishThrough(t, "s3://"+s3test.Bucket(t)+"/prod", objects.S3Config{Endpoint: endpoint,
		MaxPause: 50 * time.Millisecond}, time.Minute)
	require.ErrorContains(t, err, "it is unknown whether object current.json was replaced")
}

func TestAServerThatIgnoresConditionsIsRefused(t *testing.T) {
	t.Parallel()
	for _, header := range []string{"If-Match", "If-None-Match"} {
		t.Run(header, func(t *testing.T) {
			t.Parallel()
			var swaps atomic.Int64
			endpoint := inFrontOfS3(t, func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
				if r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, segments.CurrentKey) {
					swaps.Add(1)
				}
				if r.Method != http.MethodPut || r.Header.Get(header) == "" {
					return false
				}
				w.Header().Set("ETag", `"0"`) // stored, whatever was there
				return true
			})
			location := "s3://" + s3test.Bucket(t) + "/prod"
			err := publishThrough(t, location, objects.S3Config{Endpoint: endpoint, MaxPause: 50 * time.Millisecond},
				time.Minute)
			require.ErrorIs(t, err, objects.ErrNoConditions)
			require.ErrorContains(t, err, location+": this S3 server ignores conditional writes")
			require.Zero(t, swaps.Load())
			_, _, err = objectstest.Open(t, location).ReadTagged(t.Context(), segments.CurrentKey, "")
			require.ErrorIs(t, err, objects.ErrNotFound, "nothing went live")
		})
	}
}
