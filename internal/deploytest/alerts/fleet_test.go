//go:build storms

package alerts

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/app"
	"capper/internal/bitmap"
	"capper/internal/config"
	"capper/internal/objects"
	"capper/internal/segments/publish"
	"capper/internal/testkit"
)

// service is a capper of this process, with names as odd as configuration and segments may have them.
type service struct {
	t       testing.TB
	job     string
	listen  string // of its configuration; with port 0 two instances have the same
	addr    string
	store   string // of its configuration
	secure  bool
	dir     string // of its configuration, certificate and audit, and
	source  string // of its segments
	running *app.Service
	asking  *keeper // for permits
	caller  *http.Client
	calls   atomic.Int64
	log     *testkit.Log
}

// configuration is theirs: pacers, limits, sets and segments with all that their names may hold.
const configuration = `server:
  listen: "%s"
  stop_delay: 0s
  call_timeout: 6s
  %s
segments: {source: %s, refresh: 250ms, cache_dir: cache}
store: %s
audit: {to: audit, roll: 1s}
channels: {push: 1, e-mail.2: 2}
suppress: {opted-out: {max_age: 720h}, country/a+b-c.d: [push], sms-stop: [push]}
sets: {sms-stop: {live: true}}
pacers:
  9a_b.c-d: {limits: [{max: 100000, window: 1s}], shares: {o.t_p-1: 20%%}}
  tight: {rate: 1/m}
limits:
  default: [{name: d.1-x_y, max: 1, window: 24h}, {name: half, max: 1, window: 12h, shadow: true}]
  segments: {v.i-p_1: {daily: %d}}
`

// start starts a service whose files are in a directory of its own; several may share segments and a store.
func start(t testing.TB, job, store, source string, secure bool) *service {
	t.Helper()
	s := &service{t: t, job: job, listen: "127.0.0.1:0", store: store, secure: secure, dir: t.TempDir(), source: source,
		log: new(testkit.Log), caller: &http.Client{
			Timeout: 20 * time.Second,
			Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
				MaxIdleConnsPerHost: 100},
		}}
	if secure {
		s.listen = freeAddr(t) // as it is started again
		s.certify(90 * 24 * time.Hour)
	}
	s.configure(2)
	s.serve()
	t.Cleanup(func() {
		if s.running != nil {
			require.NoError(t, s.running.Stop())
		}
	})
	return s
}

func (s *service) scheme() string {
	if s.secure {
		return "https"
	}
	return "http"
}

func (s *service) target() target { return target{s.job, s.scheme(), s.addr} }

func (s *service) serve() {
	watcher, err := config.NewWatcher(s.file(), time.Now)
	require.NoError(s.t, err)
	s.running, err = app.Start(s.t.Context(), app.Config{Watcher: watcher, Log: s.log})
	require.NoError(s.t, err)
	if s.addr == "" { // else it is the same, and callers read it
		s.addr = s.running.Addr().String()
	}
}

func (s *service) stop() {
	require.NoError(s.t, s.running.Stop())
	s.running = nil
}

func (s *service) file() string { return filepath.Join(s.dir, "capper.yaml") }

// configure writes the configuration; the number is of a limit.
func (s *service) configure(daily int) {
	secured := ""
	if s.secure {
		secured = fmt.Sprintf("tls: {cert_file: %s, key_file: %s}", filepath.Join(s.dir, "tls.crt"),
			filepath.Join(s.dir, "tls.key"))
	}
	s.write(fmt.Sprintf(configuration, s.listen, secured, s.source, s.store, daily))
}

func (s *service) audit() string { return filepath.Join(s.dir, "audit") }

func (s *service) write(text string) { replace(s.t, s.file(), []byte(text)) }

// replace writes a file whole.
func replace(t testing.TB, file string, content []byte) {
	require.NoError(t, os.WriteFile(file+".next", content, 0o600))
	require.NoError(t, os.Rename(file+".next", file))
}

// certify makes a certificate that is good for so long.
func (s *service) certify(valid time.Duration) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(s.t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(valid), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(s.t, err)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(s.t, err)
	replace(s.t, filepath.Join(s.dir, "tls.key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	replace(s.t, filepath.Join(s.dir, "tls.crt"),
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}))
}

// publishTo makes a generation live in the directory, built so long ago, with so many in the set of the unsubscribed.
func publishTo(t testing.TB, dir string, ago time.Duration, optedOut int) {
	t.Helper()
	location, err := objects.Open(t.Context(), dir, objects.S3Config{})
	require.NoError(t, err)
	base, err := publish.ReadLiveState(t.Context(), location)
	require.NoError(t, err)
	users := func(from, n int) *bitmap.Bitmap {
		set := new(bitmap.Set)
		for i := range n {
			set.Add(uint32(from + i))
		}
		return set.Bitmap()
	}
	candidate := &publish.Candidate{Names: []string{"v.i-p_1"}, Bitmaps: []*bitmap.Bitmap{users(0, 1000)}}
	candidate.Sets = []publish.Set{
		{Name: "opted-out", Bitmap: users(1, optedOut)}, {Name: "country/a+b-c.d", Bitmap: users(500, 200)},
		{Name: "tz/America/Port-au-Prince", Bitmap: users(2000, 10)},
	}
	publisher := publish.Publisher{Location: location, ToolVersion: "test",
		Clock: func() time.Time { return time.Now().Add(-ago) }}
	_, err = publisher.Publish(t.Context(), candidate, base, "")
	require.NoError(t, err)
}

// call calls the API and reads the answer, whatever it is. An error is no answer.
func (s *service) call(ctx context.Context, method, path string, body any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, method, s.scheme()+"://"+s.addr+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := s.caller.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return err
}

// load keeps calling the service until the end of the test: of every batch some are allowed, some
// capped and some suppressed. What is lost is not repeated.
func (s *service) load() { keep(s.t, func() { s.send(context.Background()) }) }

// keeper does something again and again.
type keeper struct{ stop func() }

// keep does it a dozen times a second, however long one takes, until it is stopped or the test ends.
func keep(t testing.TB, do func()) *keeper {
	ctx, end := context.WithCancel(context.Background())
	var doing sync.WaitGroup
	doing.Go(func() {
		ticker := time.NewTicker(80 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				doing.Go(do)
			}
		}
	})
	k := &keeper{stop: func() { end(); doing.Wait() }}
	t.Cleanup(k.stop)
	return k
}

func (s *service) send(ctx context.Context) {
	n := s.calls.Add(1)
	users := []int64{1, 2, 600, 1500, 2000}
	for i := range int64(15) {
		users = append(users, 10_000+n*15+i)
	}
	_ = s.call(ctx, http.MethodPost, "/v1/filter", map[string]any{"message_id": fmt.Sprintf("promo/%d \"{x}\"", n),
		"channel": "push", "user_ids": users})
}

// everything calls what the load does not.
func (s *service) everything(ctx context.Context) error {
	filter := map[string]any{"message_id": "m", "user_ids": []int{7, 8, 9000}}
	for _, c := range []struct {
		method, path string
		body         any
	}{
		{http.MethodPost, "/v1/filter", filter},
		{http.MethodPost, "/v1/filter", filter},
		{http.MethodPost, "/v1/filter", map[string]any{"user_ids": []int{-1}}},
		{http.MethodPost, "/v1/release", map[string]any{"message_id": "m", "user_ids": []int{9000}}},
		{http.MethodPost, "/v1/sets/sms-stop/members", map[string]any{"add": []int{700}}},
		{http.MethodGet, "/v1/users/7", nil},
		{http.MethodGet, "/v1/status", nil},
		{http.MethodGet, "/v1/messages", nil},
		{http.MethodGet, "/nowhere", nil},
		{http.MethodPost, "/v1/permits", map[string]any{"pacers": []string{"9a_b.c-d"}, "permits": 3}},
	} {
		if err := s.call(ctx, c.method, c.path, c.body); err != nil {
			return fmt.Errorf("%s %s: %w", c.method, c.path, err)
		}
	}
	return nil
}

// shown are the names of the metrics that the services show.
func shown(t testing.TB, services ...*service) map[string]bool {
	names := map[string]bool{}
	for _, s := range services {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.scheme()+"://"+s.addr+"/metrics", nil)
		require.NoError(t, err)
		response, err := s.caller.Do(request)
		require.NoError(t, err)
		text, err := io.ReadAll(response.Body)
		response.Body.Close()
		require.NoError(t, err)
		for line := range strings.Lines(string(text)) {
			if name, _, ok := strings.Cut(strings.TrimPrefix(line, "# TYPE "), " "); ok &&
				!strings.HasPrefix(line, "# HELP") {
				name, _, _ = strings.Cut(name, "{")
				names[name] = true
			}
		}
	}
	require.NotEmpty(t, maps.Keys(names))
	return names
}
