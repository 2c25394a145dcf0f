//go:build storms

package alerts

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/testkit"
)

// prometheus is a real one with the shipped rules, in which time is shortened.
type prometheus struct {
	t     testing.TB
	url   string
	log   *testkit.Log
	stood atomic.Int64 // when the machine stood still for the last time; 0: never
}

// target is what it scrapes.
type target struct{ job, scheme, addr string }

const prometheusYAML = `global: {scrape_interval: 500ms, scrape_timeout: 500ms, evaluation_interval: 500ms}
rule_files: [capper.rules.yaml]
scrape_configs:
`

// scrape starts a Prometheus, which ends with the test.
func scrape(t testing.TB, targets ...target) *prometheus {
	t.Helper()
	dir := t.TempDir()
	rules, err := os.ReadFile(shipped("prometheus/capper.rules.yaml"))
	require.NoError(t, err)
	config := prometheusYAML
	for i, to := range targets {
		config += fmt.Sprintf("  - {job_name: scrape%d, scheme: %s, tls_config: {insecure_skip_verify: true}, "+
			"static_configs: [{targets: ['%s'], labels: {job: %s}}]}\n", i, to.scheme, to.addr, to.job)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "prometheus.yaml"), []byte(config), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "capper.rules.yaml"), []byte(Shorten(string(rules))), 0o600))
	addr := freeAddr(t)
	p := &prometheus{t: t, url: "http://" + addr, log: new(testkit.Log)}
	cmd := exec.Command(installed(t, "prometheus"), "--config.file="+filepath.Join(dir, "prometheus.yaml"),
		"--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+addr, "--log.level=warn")
	cmd.Stdout, cmd.Stderr = p.log, p.log
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	testkit.Eventually(t, func() bool {
		response, err := http.Get(p.url + "/-/ready")
		if err != nil {
			return false
		}
		response.Body.Close()
		return response.StatusCode == http.StatusOK
	}, p.log)
	p.standstills()
	return p
}

// freeAddr is a loopback address that nothing listens on.
func freeAddr(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}

// ask calls its API.
func (p *prometheus) ask(path string, query url.Values, data any) error {
	response, err := http.Get(p.url + "/api/v1/" + path + "?" + query.Encode())
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", response.Status, body)
	}
	return json.Unmarshal(body, &struct{ Data any }{data})
}

// series is one of an answer: with the values of a range, or the one of an instant.
type series struct {
	Metric map[string]string
	Value  [2]any
	Values [][2]any
}

// numbers are its values that are numbers.
func (s *series) numbers() (n int) {
	for _, v := range append(s.Values, s.Value) {
		if text, ok := v[1].(string); ok && text != "NaN" {
			n++
		}
	}
	return n
}

// query asks for an expression, over the last seconds.
func (p *prometheus) query(expr string) ([]series, error) {
	now := time.Now()
	at := func(t time.Time) string { return fmt.Sprintf("%.3f", float64(t.UnixMilli())/1000) }
	var data struct{ Result []series }
	err := p.ask("query_range", url.Values{"query": {expr}, "start": {at(now.Add(-3 * time.Second))}, "end": {at(now)},
		"step": {"0.5"}}, &data)
	return data.Result, err
}

// rule is one as Prometheus has loaded it.
type rule struct {
	Name, Query, Type, Health, LastError string
	Labels, Annotations                  map[string]string
}

func (p *prometheus) rules() (list []rule) {
	var data struct{ Groups []struct{ Rules []rule } }
	require.NoError(p.t, p.ask("rules", nil, &data))
	for _, group := range data.Groups {
		list = append(list, group.Rules...)
	}
	return list
}

// alert is one that is active.
type alert struct {
	State               string
	Labels, Annotations map[string]string
}

// alerts are those that are active of the job, or of none.
func (p *prometheus) alerts(job string) (list []alert) {
	var data struct{ Alerts []alert }
	require.NoError(p.t, p.ask("alerts", nil, &data))
	for _, a := range data.Alerts {
		if of := a.Labels["job"]; of == job || of == "" {
			list = append(list, a)
		}
	}
	return list
}

// firing are the names of those that fire.
func (p *prometheus) firing(job string) (names []string) {
	for _, a := range p.alerts(job) {
		if a.State == "firing" {
			names = append(names, a.Labels["alertname"])
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// starved reports whether scrapes of the job took so long that the machine, and not the service, is away: then
// CapperDown says so.
func (p *prometheus) starved(job string) bool {
	slow, err := p.query(fmt.Sprintf(`max_over_time(scrape_duration_seconds{job=%q}[30s]) > 0.3`, job))
	require.NoError(p.t, err)
	return len(slow) > 0
}

// standstills notes when this process, and the services in it, stood still.
func (p *prometheus) standstills() {
	ended := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		for last := time.Now(); ; last = time.Now() {
			select {
			case <-ended:
				return
			case <-time.After(50 * time.Millisecond):
				if still := time.Since(last); still > 500*time.Millisecond {
					p.stood.Store(time.Now().UnixNano())
					p.t.Logf("the machine stood still for %v", still.Round(time.Millisecond))
				}
			}
		}
	})
	p.t.Cleanup(func() { close(ended); watching.Wait() })
}

// ofStandstills are alerts that a machine causes which stands still for a moment: of a minute in them that is half a
// second here.
var ofStandstills = []string{
	"CapperDown", "CapperAbsent", "CapperLatencyBudgetBurnsFast", "CapperLatencyBudgetBurnsSlowly",
	"CapperAvailabilityBudgetBurnsFast",
	"CapperAvailabilityBudgetBurnsSlowly", "CapperUsersUnavailable", "CapperStoreDown", "CapperShardDegraded",
	"CapperStoreDegraded", "CapperStoreErrors",
	"CapperTooFewReplicas", "CapperInstanceUnheard", "CapperInstancesDiffer", "CapperGenerationsDiffer",
	"CapperAuditBehind", "CapperAuditNotFlushed",
}

// stoodStill reports whether a standstill may be why an alert fires: for a minute, or, where what was lost of a month's
// budget stays lost, from then on.
func (p *prometheus) stoodStill(name string) bool {
	last := p.stood.Load()
	return last > 0 && slices.Contains(ofStandstills, name) && (strings.HasSuffix(name, "Slowly") ||
		time.Since(time.Unix(0, last)) < time.Minute)
}

// unexpected are those that fire and should not.
func (p *prometheus) unexpected(job string, may []string) []string {
	firing := slices.DeleteFunc(p.firing(job), func(name string) bool {
		return slices.Contains(may, name) ||
			p.stoodStill(name)
	})
	missed := func(name string) bool { return name == "CapperDown" || name == "CapperAbsent" }
	if slices.ContainsFunc(firing, missed) && p.starved(job) {
		firing = slices.DeleteFunc(firing, missed)
	}
	return firing
}

// told is what people read of those that are active, for messages of tests.
func (p *prometheus) told(job string) string {
	var text strings.Builder
	for _, a := range p.alerts(job) {
		fmt.Fprintf(&text, "%s %v: %s\n", a.State, a.Labels, a.Annotations["description"])
	}
	return text.String()
}
