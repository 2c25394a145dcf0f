package doctor

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/testkit"
)

func TestACheckThatHangsCostsOnlyItself(t *testing.T) {
	t.Parallel()
	forever := make(chan struct{})
	t.Cleanup(func() { close(forever) })
	checks := []check{
		{Name: "stuck", Within: 50 * time.Millisecond, Look: func(_ context.Context, n *notes) {
			n.OK("first", "was quick")
			<-forever
			n.OK("second", "comes too late")
		}},
		{Name: "polite", Within: 50 * time.Millisecond, Look: func(ctx context.Context, n *notes) {
			<-ctx.Done()
			n.Warn("", "waited", "wait less", "it takes time")
		}},
		{Name: "fine", Look: func(_ context.Context, n *notes) { n.OK("", "%d of %d", 1, 1) }},
	}
	var report *Report
	testkit.Eventually(t, func() bool { // on a machine that stands still the others are late as well
		report = Run(t.Context(), checks)
		return len(report.Findings) == 4 && report.Counts[Failed] == 1
	})
	require.Equal(t, []Finding{
		{Check: "stuck", Of: "first", Result: OK, Seen: "was quick"},
		{Check: "stuck", Result: Failed, Seen: "check did not finish within 50ms", Change: report.Findings[1].Change,
			Why: report.Findings[1].Why},
		{Check: "polite", Result: Warning, Seen: "waited", Change: "wait less", Why: "it takes time"},
		{Check: "fine", Result: OK, Seen: "1 of 1"},
	}, report.Findings)
	require.Equal(t, map[result]int{OK: 2, Failed: 1, Warning: 1}, report.Counts)
}
