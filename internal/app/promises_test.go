package app

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"capper/internal/config"
	"capper/internal/testcluster"
)

// updatePromises makes the tests write the files in testdata/promises. These files freeze the interfaces that users
// rely on: names and labels of metrics, whole exchanges of the API, and a configuration with its version.
// A difference breaks a promise, or needs a line in the changelog and a way forward.
var updatePromises = flag.Bool("update-promises", false, "write testdata/promises")

func TestMetricsKeepTheirNamesAndLabels(t *testing.T) {
	t.Parallel()
	for kind, store := range map[string]string{
		config.Embedded: onEmbedded(t.TempDir()),
		config.Redis:    onRedis(testcluster.Single(t, testcluster.Options{}).Addrs...),
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			cfg, _ := configure(t, store+"\naudit: {to: "+t.TempDir()+"}", "")
			requirePromise(t, "metrics-"+kind+".txt", labelledMetrics(begin(t, cfg).registry))
		})
	}
}

// labelledMetrics returns one line for each metric: its name and its labels.
func labelledMetrics(registry *prometheus.Registry) string {
	descriptions := make(chan *prometheus.Desc)
	go func() {
		registry.Describe(descriptions)
		close(descriptions)
	}()
	described := regexp.MustCompile(`fqName: "(capper_[a-z_]+)".*(constLabels: \{.*)\}$`)
	value := regexp.MustCompile(`"[^"]*"`)
	var lines []string
	for d := range descriptions {
		if m := described.FindStringSubmatch(d.String()); m != nil {
			lines = append(lines, m[1]+" "+value.ReplaceAllString(m[2], "…")+"\n")
		}
	}
	slices.Sort(lines)
	return strings.Join(slices.Compact(lines), "")
}

// TestAConfigurationKeepsItsVersion checks the version of a configuration with every section. The version must be the
// same in every release, because instances of different releases must not seem to differ.
func TestAConfigurationKeepsItsVersion(t *testing.T) {
	t.Parallel()
	file, err := filepath.Abs("testdata/promises/capper.yaml")
	require.NoError(t, err)
	watcher, err := config.NewWatcher(file, time.Now)
	require.NoError(t, err)
	requirePromise(t, "version.txt", watcher.Current().Version+"\n")
}

// exchanges lists consecutive calls to a service in which user 7 is in the segment new.
var exchanges = []struct{ call, body string }{
	{"POST /v1/filter", `{"message_id":"m1","channel":"push","user_ids":[7,8,8,9]}`},
	{"POST /v1/filter", `{"message_id":"m1","channel":"push","user_ids":[7,8,10]}`},
	{"POST /v1/filter", `{"message_id":"m2","channel":"push","user_ids":[9,10,11]}`},
	{"POST /v1/filter", `{"message_id":"m2","channel":"push","user_ids":[9,12],"detail":"counts"}`},
	{"POST /v1/filter", `{"message_id":"m3","user_ids":[12,13],"enforce":false}`},
	{"POST /v1/filter", `{"user_ids":[13,14],"record":false}`},
	{"POST /v1/filter", `{"user_ids":[13,14],"record":false,"waves":true}`},
	{"POST /v1/filter", `{"message_id":"m4","users_bitmap":"OjAAAAEAAAAAAAEAEAAAAAcADwA="}`},
	{"POST /v1/filter", `{"message_id":"m5","audience":"new"}`},
	{"POST /v1/filter", `{"message_id":"m5","user_ids":[]}`},
	{"POST /v1/filter", `{"message_id":"m5","user_ids":[1,-1]}`},
	{"POST /v1/filter", `{"message_id":"m5","user_ids":[1.5]}`},
	{"POST /v1/filter", `{"message_id":"","user_ids":[1]}`},
	{"POST /v1/filter", `{"message_id":"m5","user_ids":[1],"colour":"red"}`},
	{"POST /v1/filter", `{"message_id":"m5","channel":"fax","user_ids":[1]}`},
	{"POST /v1/filter", `{"message_id":"m5","user_ids":[1]} {}`},
	{"POST /v1/release", `{"message_id":"m1","channel":"push","user_ids":[8,99]}`},
	{"GET /v1/users/7", ``},
	{"GET /v1/users/x", ``},
	{"GET /v1/messages/m1", ``},
	{"GET /v1/messages/unknown", ``},
	{"GET /v1/limits", ``},
	{"POST /v1/segments/lookup", `{"user_ids":[7,8]}`},
	{"POST /v1/audience/count", `{"audience":"new"}`},
	{"POST /v1/audience/count", `{"audience":"new -"}`},
	{"POST /v1/permits", `{"pacers":["carrier"],"permits":3,"max_wait":"1s"}`},
	{"POST /v1/permits", `{"pacers":["nobody"],"permits":3}`},
	{"POST /v1/permits", `{"pacers":["carrier"],"permits":2,"max_wait":"20s","request_id":"r1"}`},
	{"POST /v1/permits/return", `{"pacers":["carrier"],"permits":2,"max_wait":"20s","request_id":"r1","used":2}`},
	{"POST /v1/permits/return", `{"pacers":["carrier"],"permits":2,"request_id":"r2","used":1}`},
	{"GET /v1/pacers", ``},
	{"DELETE /v1/users/7", ``},
	{"GET /v1/unknown", ``},
	{"PUT /v1/filter", `{}`},
}

func TestExchangesStayAsTheyAre(t *testing.T) {
	t.Parallel()
	cfg, _ := configure(t, onEmbedded(t.TempDir())+"\npacers: {carrier: {rate: 2/s}}", "")
	s := begin(t, cfg)
	var shown strings.Builder
	for _, e := range exchanges {
		fmt.Fprintf(&shown, "%s %s\n%s\n\n", e.call, e.body, exchange(t, s, e.call, e.body))
	}
	requirePromise(t, "exchanges.txt", shown.String())
}

// volatile matches the parts that differ between two runs: times, generations, versions (which contain a path),
// request ids, and waits of permits. The text of an error is not frozen; its code and field are.
var volatile = regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+Z|\d{8}T\d{6}\.\d{3}Z-[0-9a-f]+|"[0-9a-f]{12}"|` +
	`"(wait_ms|next_ms|queue_ms|retry_after_ms|request_id|message)": ("([^"\\]|\\.)*"|[0-9.]+)`)

// exchange returns the answer to a call: the status, the headers that callers rely on, and the body.
func exchange(t *testing.T, s *Service, call, body string) string {
	t.Helper()
	method, path, _ := strings.Cut(call, " ")
	request, err := http.NewRequestWithContext(t.Context(), method, "http://"+s.Addr().String()+path,
		strings.NewReader(body))
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	var lines bytes.Buffer
	if json.Indent(&lines, text, "", " ") == nil {
		text = lines.Bytes()
	}
	masked := volatile.ReplaceAllStringFunc(string(text), func(found string) string {
		if name, _, named := strings.Cut(found, `": `); named {
			return name + `": …`
		}
		return "…"
	})
	return fmt.Sprintf("%d %s\n%s", response.StatusCode, response.Header.Get("Content-Type"), masked)
}

// requirePromise compares got with the file in testdata/promises.
func requirePromise(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata/promises", name)
	if *updatePromises {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}
