package capping_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
)

// TestUsesCountSends compares the counts with the explanations of all users, under limits with few and with many
// numbers, on every channel.
func TestUsesCountSends(t *testing.T) {
	t.Parallel()
	strict := rolling("strict", 1, day)
	strict.Shadow = true
	b := newCapper(t, &capping.Policy{
		Channels: map[string]capping.Channel{"push": 1, "email": 2},
		Default:  []capping.Limit{rolling("closed", 0, day, 2), rolling("daily", 3, day)},
		Segments: map[string][]capping.Limit{
			"new": {rolling("daily", 2, day), strict, rolling("weekly", 20, 7*day), rolling("mail", 1, day, 2)},
			"vip": {},
		},
	})
	r := rand.New(rand.NewPCG(3, 3))
	var everybody []capping.UserID
	for user := range capping.UserID(300) {
		everybody = append(everybody, user)
	}
	for n := range 40 {
		b.clock.Advance(time.Duration(r.IntN(8)) * time.Hour)
		users := make([]capping.UserID, 0, 300)
		for _, user := range everybody {
			if r.IntN(3) == 0 {
				users = append(users, user)
			}
		}
		b.filter(&capping.Send{Message: capping.Message{ID: fmt.Sprint(n)}, Users: users, Enforce: n%4 > 0,
			Record: true, Channel: capping.Channel(r.IntN(3))})
	}
	for channel := range capping.Channel(3) {
		uses := capping.NewUses(b.Basis(), channel)
		for _, batch := range [][]capping.UserID{everybody[:170], everybody[170:]} {
			uses.Add(b.filter(&capping.Send{Basis: uses.Basis(), Channel: channel, Users: batch, Enforce: true}))
		}
		b.requireUses(uses.All(), everybody, channel)
	}
}

// requireUses checks the counts against the explanations of the users.
func (b *bench) requireUses(uses []capping.Use, users []capping.UserID, channel capping.Channel) {
	named := map[string]bool{}
	for _, use := range uses {
		named[use.Segment+" "+use.Limit.Name] = true
		counted := make([]int, len(use.Steps))
		for _, user := range users {
			explained, err := b.Explain(context.Background(), user)
			require.NoError(b.t, err)
			if explained.Segment != use.Segment {
				continue
			}
			for _, s := range explained.Standings {
				if s.Limit.Name != use.Limit.Name {
					continue
				}
				require.Equal(b.t, s.Limit.Max, use.Limit.Max)
				step := 0
				for step+1 < len(use.Steps) && s.Used >= use.Steps[step+1].Sends {
					step++
				}
				counted[step]++
			}
		}
		for k, step := range use.Steps {
			require.Equal(b.t, counted[k], step.Users, "%s of %q, %d sends", use.Limit.Name, use.Segment, step.Sends)
		}
	}
	want := map[string]bool{" daily": true, "new daily": true, "new weekly": true}
	if channel == 2 {
		want["new mail"] = true
	}
	require.Equal(b.t, want, named)
}
