package topology

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhatNodesSayOfMoves(t *testing.T) {
	t.Parallel()
	g := gossipOf("07c3 127.0.0.1:30004@31004 slave e7d1 0 1426238317239 4 connected\n"+
		"67ed 127.0.0.1:30002@31002 master - 0 1426238316232 2 connected 5461-10922\n"+
		"292f 127.0.0.1:30003@31003,name3 master - 0 1426238318243 3 connected\n"+
		"292e 127.0.0.1:30013@31003,name3 master,fail - 0 1426238318243 3 disconnected\n"+
		"e7d1 127.0.0.1:30001@31001 myself,master - 0 0 1 connected 0-5460 7 [93-<-67ed] [77->-292f] [78-<-07c3]\n",
		"127.0.0.1:30001")
	require.Equal(t, gossip{
		self: "e7d1", imports: []importing{{93, "67ed"}, {78, "07c3"}},
		idle: []string{"127.0.0.1:30003"}, known: []string{"07c3", "67ed", "292f", "292e", "e7d1"},
	}, g)
}
