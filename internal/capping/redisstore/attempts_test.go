package redisstore

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
)

func TestEveryUserInAGroupOfItsOwn(t *testing.T) {
	t.Parallel()
	s := openShared(t, nil)
	b := batchOf("a", everyNth(1000, 1))
	b.Rules, b.Channel = nil, 200
	for g := range 250 {
		rules := make([]capping.Rule, 32)
		for i := range rules {
			rules[i] = capping.Rule{Max: 9, Hold: 3_600_000, Channels: capping.ChannelSetOf(capping.Channel(i), 200)}
		}
		rules[g%32].Max = 1 + g%2
		b.Rules = append(b.Rules, rules)
	}
	for i := range b.Users {
		b.Groups[i] = uint8(i * 7 % 250)
	}
	for round := range 3 {
		b.Message.ID, b.Token = fmt.Sprint(round), capping.Message{ID: fmt.Sprint(round)}.Token()
		for i, v := range filter(t, s, b) {
			g := int(b.Groups[i])
			want := capping.Allowed
			if round > g%2 {
				want = capping.Denied
				require.Equal(t, g%32, int(v.Rule))
			}
			require.Equal(t, want, v.Outcome, "round %d, user %d", round, b.Users[i])
		}
	}
}
