package pacing

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNamesInErrorsAreBounded checks that an error lists each name once, in order, and no more than mostNames.
func TestNamesInErrorsAreBounded(t *testing.T) {
	t.Parallel()
	var none *Policy
	require.Equal(t, "configured pacers: none", none.PacerNames())
	otp := []Share{{Name: "otp", Percent: 20}}
	p := &Policy{Pacers: []Pacer{{Name: "b", Shares: otp}, {Name: "a", Shares: append(otp, Share{Name: "alerts"})}}}
	require.Equal(t, "configured pacers: a, b", p.PacerNames())
	require.Equal(t, "b", p.Pacers[0].Name, "the policy keeps its order")
	require.Equal(t, "shares: alerts, otp", ShareNames(p.Pacers))
	p.Pacers = nil
	for i := range mostNames + 3 {
		p.Pacers = append(p.Pacers, Pacer{Name: fmt.Sprintf("p%02d", i)})
	}
	require.Regexp(t, `^configured pacers: p00, p01, .*p19 and 3 more$`, p.PacerNames())
	require.Equal(t, "shares: none", ShareNames(p.Pacers))
}
