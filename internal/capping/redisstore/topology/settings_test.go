package topology

import (
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

func TestHiddenSettingsAreNoReasonToRefuse(t *testing.T) {
	t.Parallel()
	var f Findings
	checkEviction(&f, "replica r", Facts{}, redis.NewMapStringStringCmd(t.Context()))
	new(Rules).checkAppendOnly(&f, "replica r", Facts{}, "")
	require.Empty(t, f.Refusals)
	require.Len(t, f.Warnings, 2)
	require.Contains(t, f.Warnings[0], "replica r hides its maxmemory-policy")
	require.Contains(t, f.Warnings[1], "replica r hides whether its append-only file is on")
}
