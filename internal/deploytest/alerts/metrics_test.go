package alerts

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each metric of the table in docs/api.md is looked at by a panel or by a rule.
func TestEveryMetricIsLookedAt(t *testing.T) {
	t.Parallel()
	rules, err := os.ReadFile(shipped("prometheus/capper.rules.yaml"))
	require.NoError(t, err)
	text := string(rules)
	for name := range dashboards() {
		dashboard, err := os.ReadFile(shipped(name))
		require.NoError(t, err)
		text += string(dashboard)
	}
	table, err := os.ReadFile("../../../docs/api.md")
	require.NoError(t, err)
	for line := range strings.Lines(string(table)) {
		if !strings.HasPrefix(line, "| `capper_") {
			continue
		}
		for _, m := range regexp.MustCompile("`(capper_[a-z_]+)`").FindAllStringSubmatch(strings.Split(line, "|")[1],
			-1) {
			require.Regexp(t, m[1]+`(_bucket|_count)?[{\[ )\\]`, text, "no panel and no rule has it")
		}
	}
}
