package alerts

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// written is an alert as it stands in the file.
type written struct{ name, expr, after, severity, runbook string }

var (
	alertLine = regexp.MustCompile(`(?m)^      - alert: (\w+)$`)
	after     = regexp.MustCompile(`\n        for: (\S+)\n`)
	severity  = regexp.MustCompile(`\n        labels: \{severity: (critical|warning|info)\}\n`)
	summary   = regexp.MustCompile(`\n          summary: '.{8,}'\n`)
	described = regexp.MustCompile(`\n          description: >-\n            .{20,}\n`)
	runbook   = regexp.MustCompile(`\n          runbook: docs/(\w+\.md)#([a-z-]+)\n`)
)

// alertsOf reads the rules.
func alertsOf(t *testing.T) (list []written) {
	text, err := os.ReadFile(shipped("prometheus/capper.rules.yaml"))
	require.NoError(t, err)
	starts := alertLine.FindAllStringSubmatchIndex(string(text), -1)
	for i, at := range starts {
		end := len(text)
		if i+1 < len(starts) {
			end = starts[i+1][0]
		}
		block, name := string(text[at[0]:end]), string(text[at[2]:at[3]])
		a := written{name: name, expr: block, after: "at once"}
		if m := after.FindStringSubmatch(block); m != nil {
			a.after = m[1]
		}
		require.Regexp(t, severity, block, name)
		require.Regexp(t, summary, block, name)
		require.Regexp(t, described, block, name)
		require.Regexp(t, runbook, block, name)
		a.severity, a.runbook = severity.FindStringSubmatch(block)[1],
			strings.Join(runbook.FindStringSubmatch(block)[1:], "#")
		list = append(list, a)
	}
	require.NotEmpty(t, list)
	return list
}

// The command of the document makes a link of each alert's runbook, and changes nothing else that counts.
func TestRunbooksBecomeLinks(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile("../../../docs/monitoring.md")
	require.NoError(t, err)
	line := regexp.MustCompile(`(?m)^sed .* >capper\.rules\.yaml$`).FindString(string(document))
	require.NotEmpty(t, line)
	root, err := filepath.Abs("../../..")
	require.NoError(t, err)
	command := exec.Command("bash", "-c", "ln -s '"+root+"/deploy' deploy && "+line)
	command.Dir = t.TempDir()
	out, err := command.CombinedOutput()
	require.NoError(t, err, "%s", out)
	linked, err := os.ReadFile(filepath.Join(command.Dir, "capper.rules.yaml"))
	require.NoError(t, err)
	rules, err := os.ReadFile(shipped("prometheus/capper.rules.yaml"))
	require.NoError(t, err)
	require.Equal(t, len(alertsOf(t)), strings.Count(string(linked), "\n          runbook_url: "+
		"https://wiki.example.com/capper/docs/monitoring.md#capper"))
	require.Equal(t, string(rules), strings.ReplaceAll(string(linked), "runbook_url: https://wiki.example.com/capper/",
		"runbook: "))
}

// Each alert has a section in the document, at its runbook, whose first line gives its severity and the time after
// which it fires; a reason in a comment, and a unit test.
func TestAlertsAreExplained(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile("../../../docs/monitoring.md")
	require.NoError(t, err)
	tests := ""
	for _, name := range []string{"firing", "days"} {
		text, err := os.ReadFile(shipped("prometheus/tests/" + name + ".yaml"))
		require.NoError(t, err)
		tests += string(text)
	}
	rules, err := os.ReadFile(shipped("prometheus/capper.rules.yaml"))
	require.NoError(t, err)
	var sections []string
	for _, m := range regexp.MustCompile(`(?m)^### (Capper\w+)$`).FindAllStringSubmatch(string(document), -1) {
		sections = append(sections, m[1])
	}
	var names []string
	for _, a := range alertsOf(t) {
		names = append(names, a.name)
		require.Equal(t, "monitoring.md#"+strings.ToLower(a.name), a.runbook)
		when := "after " + a.after
		if a.after == "at once" {
			when = a.after
		}
		require.Contains(t, string(document), "\n### "+a.name+"\n\n*"+a.severity+", "+when+":* ")
		require.Contains(t, tests, "\n  - name: "+a.name, "it has no unit test")
		require.Regexp(t, `(?m)^      # .*\n      - alert: `+a.name+`$`, string(rules), "no reason")
	}
	require.Equal(t, names, sections)
	slices.Sort(names)
	require.Len(t, slices.Compact(names), len(sections))
}

// promtool accepts the rules, and prints the number that the document shows. TestRulesFireWhenTheyShould runs their
// unit tests.
func TestRulesByPromtool(t *testing.T) {
	t.Parallel()
	out, err := exec.Command(installed(t, "promtool"), "check", "rules", "--lint-fatal",
		shipped("prometheus/capper.rules.yaml")).CombinedOutput()
	require.NoError(t, err, "%s", out)
	document, err := os.ReadFile("../../../docs/monitoring.md")
	require.NoError(t, err)
	found := regexp.MustCompile(`SUCCESS: \d+ rules found`).FindString(string(out))
	require.NotEmpty(t, found, "%s", out)
	require.Contains(t, string(document), found)
}

// What no rule may do: look back less than five minutes, or name a job or an instance.
func TestRulesAreForEveryFleet(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(shipped("prometheus/capper.rules.yaml"))
	require.NoError(t, err)
	require.NotRegexp(t, `\[[1-4]m\]|\[\d+s\]`, string(text))
	require.NotRegexp(t, `(job|instance)=~?"`, string(text))
}

// The script for nightly builds ends with the build's status, and tells of it in Prometheus' format.
func TestBuildsTellHowTheyWent(t *testing.T) {
	t.Parallel()
	script, file := shipped("prometheus/segmentbuild-metrics.sh"), filepath.Join(t.TempDir(), "segmentbuild.prom")
	told := func(want string) {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Regexp(t, want, string(text))
		check := exec.Command(installed(t, "promtool"), "check", "metrics")
		check.Stdin = strings.NewReader(string(text))
		out, err := check.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	require.NoError(t, exec.Command(script, file, "true").Run())
	told(`(?s)exit_status 0\n.*success_timestamp_seconds [1-9]`)
	failed := new(exec.ExitError)
	require.ErrorAs(t, exec.Command(script, file, "sh", "-c", "exit 3").Run(), &failed)
	require.Equal(t, 3, failed.ExitCode())
	told(`(?s)exit_status 3\n.*success_timestamp_seconds [1-9]`)
	require.ErrorAs(t, exec.Command(script, file).Run(), &failed)
	require.Equal(t, 2, failed.ExitCode())
}

// Time is divided, numbers are not.
func TestShorten(t *testing.T) {
	t.Parallel()
	require.Equal(t, "rate(a[2500ms] offset 30000ms) > 2 * 86400\n  for: 5000ms",
		Shorten("rate(a[5m] offset 1h) > 2 * 86400\n  for: 10m"))
}
