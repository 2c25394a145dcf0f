package topology

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseSlots(t *testing.T) {
	t.Parallel()
	node := func(fields ...any) []any { return fields }
	for name, test := range map[string]struct {
		node any
		addr string
		want string
	}{
		"address":           {node("10.0.0.1", int64(7000), "id"), "10.0.0.1:7000", ""},
		"before Redis 4":    {node("10.0.0.1", int64(7000)), "10.0.0.1:7000", ""},
		"IPv6":              {node("fd00::1", int64(7000), "id"), "[fd00::1]:7000", ""},
		"null":              {node(nil, int64(7000), "id", node("ip", "10.0.0.1")), ":7000", ""},
		"empty":             {node("", int64(7000), "id"), ":7000", ""},
		"name not known":    {node("?", int64(7000), "id", node("ip", "10.0.0.1")), "10.0.0.1:7000", ""},
		"nothing known":     {node("?", int64(7000), "id", node("hostname", "a")), ":7000", ""},
		"name known":        {node("a.example", int64(7000), "id", node("ip", "10.0.0.1")), "a.example:7000", ""},
		"no port":           {node("10.0.0.1", nil), "", "port <nil>"},
		"port out of range": {node("10.0.0.1", int64(70000)), "", "port 70000"},
		"no node":           {"10.0.0.1:7000", "", "node 10.0.0.1:7000"},
	} {
		ranges, err := parseSlots([]any{[]any{int64(0), int64(5), test.node}})
		if test.want != "" {
			require.ErrorContains(t, err, test.want, name)
			continue
		}
		require.NoError(t, err, name)
		require.Equal(t, test.addr, ranges[0].members[0].addr, name)
	}
	for _, bad := range [][]any{{"x"}, {[]any{int64(1)}}, {[]any{int64(-1), int64(5)}}, {[]any{int64(6), int64(5)}},
		{[]any{int64(0), int64(16384)}}} {
		_, err := parseSlots(bad)
		require.ErrorContains(t, err, "reply to CLUSTER SLOTS: slot range 0", "%v", bad)
	}
}

func TestAddressesWithoutHostAreTheNodesOwn(t *testing.T) {
	t.Parallel()
	n := &Node{addr: "10.0.0.1:7000"}
	for addr, want := range map[string]string{":7001": "10.0.0.1:7001", "10.0.0.2:7001": "10.0.0.2:7001",
		"[::1]:7": "[::1]:7", "::1:7": "[::1]:7", "x": "x"} {
		require.Equal(t, want, n.resolve(addr))
	}
}
