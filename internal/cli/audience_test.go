package cli_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/client"
	"capper/client/api"
	"capper/internal/cli"
)

func TestPointed(t *testing.T) {
	t.Parallel()
	at := func(column int) error {
		return fmt.Errorf("count: %w", &client.Error{Code: client.CodeInvalidRequest, Message: "column",
			Column: column})
	}
	for name, c := range map[string]struct {
		expression string
		column     int
		want       string
	}{
		"in the middle":     {"active - & vip", 10, "active - & vip\n           ^"},
		"at the beginning":  {"& vip", 1, "& vip\n  ^"},
		"behind the end":    {"vip &", 6, "vip &\n       ^"},
		"beyond all":        {"vip", 99, "vip\n     ^"},
		"of more lines":     {"active\n- & vip\n| b", 10, "- & vip\n    ^"},
		"behind a tab":      {"a\t& & b", 5, "a & & b\n      ^"},
		"behind an umlaut":  {"ü a", 1, "ü a\n  ^"},
		"columns not bytes": {"üü & & b", 6, "üü & & b\n       ^"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := cli.Pointed(at(c.column), c.expression)
			require.EqualError(t, err, "count: invalid_request: column\n  "+c.want)
			require.True(t, client.HasCode(err, client.CodeInvalidRequest))
		})
	}
	plain := errors.New("no answer")
	require.Equal(t, plain, cli.Pointed(plain, "a"))
	require.NotContains(t, cli.Pointed(at(0), "a b").Error(), "^")
	require.NoError(t, cli.Pointed(nil, "a"))
}

func TestPercent(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]cli.Percent{
		"10%": {To: 10}, "0.5": {To: 0.5}, "100%": {To: 100}, "10%-20%": {From: 10, To: 20}, "0-12.5": {To: 12.5},
		"99.9-100%": {From: 99.9, To: 100},
	} {
		var p cli.Percent
		require.NoError(t, p.UnmarshalText([]byte(text)))
		require.Equal(t, want, p)
	}
	for _, text := range []string{"", "%", "0", "0%", "-1%", "100.1%", "NaN", "ten", "10%%", "20%-10%", "10%-10%",
		"10%-", "-", "-10%", "10%-101%", "NaN-10%", "10%-20%-30%", "+1-2"} {
		require.ErrorContains(t, new(cli.Percent).UnmarshalText([]byte(text)), "must be a percentage such as 20%, "+
			"or a range such as 10%-20%, between 0% and 100%",
			text)
	}
}

func TestNarrowed(t *testing.T) {
	t.Parallel()
	for _, n := range []cli.Narrowed{{Sample: cli.Percent{To: 10}}, {Salt: "a"}} {
		_, err := n.Audience("vip")
		require.ErrorContains(t, err, "must be set together")
	}
	n := cli.Narrowed{Sample: cli.Percent{To: 10}, Salt: "a", Generation: "g1"}
	got, err := n.Audience("vip")
	require.NoError(t, err)
	require.Equal(t, &client.Audience{Expression: "vip", Generation: "g1", Sample: &api.Sample{Percent: 10,
		Salt: "a"}}, got)
	n.Sample.From = 2.5
	got, err = n.Audience("vip")
	require.NoError(t, err)
	require.Equal(t, &api.Sample{From: 2.5, To: 10, Salt: "a"}, got.Sample)
}
