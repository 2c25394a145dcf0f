package pacing_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/pacing"
	"capper/internal/pacing/pacingtest"
)

// A call names pacers of one group, and asks the store for targets of this group alone.
func TestPacersOfACallAreOfOneGroup(t *testing.T) {
	t.Parallel()
	rate, otp := pacing.Rate{Permits: 100, Per: time.Second}, []pacing.Share{{Name: "otp", Percent: 20}}
	store := &groups{Memory: pacingtest.NewMemory(time.Now)}
	p := pacing.New(store, &pacing.Policy{Pacers: []pacing.Pacer{
		{Name: "a", Rate: rate, Group: "sms"}, {Name: "b", Rate: rate, Shares: otp,
			Group: "sms"},
		{Name: "c", Rate: rate}, {Name: "d", Rate: rate, Group: "mail"}, {Name: "e", Rate: rate, Group: "sms"},
	}})
	for _, names := range [][]string{{"a", "b", "e"}, {"c"}, {"d"}} {
		_, err := p.Take(t.Context(), &pacing.Call{Pacers: names, Permits: 1, MaxWait: 2 * time.Second, RequestID: "r"})
		require.NoError(t, err)
		_, err = p.Return(t.Context(), &pacing.Call{Pacers: names, Permits: 1, RequestID: "r"}, 0)
		require.NoError(t, err)
	}
	for _, c := range []struct {
		names []string
		want  string
	}{
		{[]string{"a", "b", "d"}, `pacers[2]: must be of the same group as the other pacers: "d" has the group "mail", ` +
			`but "a" has the group "sms"`},
		{[]string{"c", "a"}, `pacers[1]: must be of the same group as the other pacers: "a" has the group "sms", but ` +
			`"c" has no group`},
	} {
		_, err := p.Take(t.Context(), &pacing.Call{Pacers: c.names, Permits: 1})
		require.EqualError(t, err, c.want)
		require.IsType(t, &pacing.FieldError{}, err)
	}
	standings, _, err := p.Look(t.Context(), "")
	require.NoError(t, err)
	require.Len(t, standings, 5)
	for i, name := range []string{"a", "b", "c", "d", "e"} {
		require.Equal(t, name, standings[i].Name, "in the order of the policy")
		require.NotEmpty(t, standings[i].Used)
	}
	require.NoError(t, p.Forget(t.Context(), "a"))
	require.NoError(t, p.Forget(t.Context(), "c"))
	require.NoError(t, p.Forget(t.Context(), "left"))
	require.Equal(t, []string{"sms", "", pacing.AnyGroup}, store.forgotten)
}

// groups is a store that keeps the groups of forgotten pacers.
type groups struct {
	*pacingtest.Memory
	forgotten []string
}

func (g *groups) ForgetPacer(_ context.Context, _, group string) error {
	g.forgotten = append(g.forgotten, group)
	return nil
}
