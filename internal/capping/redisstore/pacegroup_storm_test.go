//go:build storms

package redisstore

import (
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"capper/internal/pacing"
	"capper/internal/testcluster"
)

// While the slot of a group is half moved, the pacers of other groups give out permits and show their state. The pacers
// of the group give no permit twice.
func TestAHalfMovedSlotStopsOneGroup(t *testing.T) {
	t.Parallel()
	c := testcluster.Start(t, testcluster.Options{NodeTimeout: 60 * time.Second})
	s := openTest(t, Config{Addrs: c.Addrs, ReplicaAcks: FixedAcks(0)})
	f := &field{TB: t, cluster: c, stores: []*Store{s}, admins: map[string]*redis.Client{}}
	for _, addr := range c.Addrs {
		f.admins[addr] = admin(t, addr)
	}
	groups := []string{"", "sms", "mail", "push"}
	require.Empty(t, GroupsOfOneSlot(groups))
	ask := func(group string, request byte) *pacing.Ask {
		ask := askOf("p", 10, 0, pacing.Limit{Max: 1000, Window: time.Hour})
		ask.Targets[0].Group = group
		ask.Request = pacing.Request{request, 1}
		return ask
	}
	taken := map[string]int{}
	for i, group := range groups {
		taken[group] = take(t, s, ask(group, byte(i))).Granted
		require.Equal(t, 10, taken[group], "each group has a log of its own")
	}
	partition := s.keyspace.PacerPartition("sms")
	from := s.top.Route(partition).Addr()
	to := c.Addrs[slices.IndexFunc(c.Addrs, func(addr string) bool { return addr != from })]
	m := slotMove{f, s.keyspace.Slot(partition), f.admins[from], f.admins[to]}
	m.begin()
	key := s.pacers.placeOf("sms").keys.Log("p", "")
	m.carryKeys(key) // a call with a request id has one key on each node then
	_, err := s.TakePermits(background(t, time.Second), ask("sms", 100))
	require.Error(t, err)
	policy := &pacing.Policy{}
	for _, group := range groups {
		for _, name := range []string{"p", "q"} { // the log of p has moved, and that of q does not exist
			policy.Pacers = append(policy.Pacers, pacing.Pacer{Name: name, Group: group,
				Limits: []pacing.Limit{{Max: 1000, Window: time.Hour}}})
		}
	}
	standings, _, err := pacing.New(s, policy).Look(background(t, time.Second), "")
	require.NoError(t, err, "the other groups can be read")
	for _, standing := range standings {
		require.Equal(t, standing.Group == "sms", standing.Err != nil, standing.Name)
	}
	for round := range 20 {
		for _, group := range []string{"", "mail", "push"} {
			taken[group] += take(t, s, ask(group, byte(10+4*round+len(group)))).Granted
		}
	}
	m.end()
	taken["sms"] += take(t, s, ask("sms", 100)).Granted
	for _, group := range groups {
		look := ask(group, 0)
		look.Permits = 0
		require.Equal(t, []int{taken[group]}, take(t, s, look).States[0].Used, group)
	}
}

// A pacer is forgotten in its group, or in all groups.
func TestPacersAreForgottenByGroup(t *testing.T) {
	t.Parallel()
	s := openShared(t, nil)
	groups := []string{"", "sms", "mail"}
	used := func() (used []int) {
		for _, group := range groups {
			look := askOf("p", 0, 0, hourly)
			look.Targets[0].Group = group
			used = append(used, take(t, s, look).States[0].Used[0])
		}
		return used
	}
	for i, group := range groups {
		ask := askOf("p", 1+i, 0, hourly)
		ask.Targets[0].Group = group
		take(t, s, ask)
	}
	require.Equal(t, []int{1, 2, 3}, used())
	require.NoError(t, s.ForgetPacer(t.Context(), "p", "sms"))
	require.Equal(t, []int{1, 0, 3}, used())
	require.NoError(t, s.ForgetPacer(t.Context(), "p", pacing.AnyGroup))
	require.Equal(t, []int{0, 0, 0}, used())
}

// Groups of one slot are found.
func TestGroupsOfOneSlot(t *testing.T) {
	t.Parallel()
	require.Empty(t, GroupsOfOneSlot([]string{"", "sms", "sms", "mail", ""}))
	var names []string
	for i := range 65 {
		names = append(names, string(rune('a'+i%26))+string(rune('a'+i/26)))
	}
	shared := GroupsOfOneSlot(names)
	require.NotEmpty(t, shared, "64 slots for 65 groups")
	s := openShared(t, nil)
	for group, other := range shared {
		require.NotEqual(t, group, other)
		require.Equal(t, s.keyspace.PacerPartition(group), s.keyspace.PacerPartition(other))
	}
}
