package topology

import (
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/capping/redisstore/topology/connect"
)

func TestReplicasAreReadFromInfo(t *testing.T) {
	t.Parallel()
	online, syncing, all := countFed(connect.ParseInfo("connected_slaves:4\r\nslave0:ip=a,port=1,state=online,offset=1,lag=0\r\n" +
		"slave1:ip=a,port=2,state=wait_bgsave,offset=0\r\nslave2:ip=a,port=3,state=send_bulk,offset=0\r\nslave3:ip=a,port=4,state=send_bulk_and_stream\r\n"))
	require.Equal(t, []int{1, 3, 4}, []int{online, syncing, all})
}

func TestReplicasAreReadFromClusterNodes(t *testing.T) {
	t.Parallel()
	const text = "aa 10.0.0.1:6379@16379,one.example myself,master - 0 0 1 connected 0-16383\n" +
		"bb 10.0.0.2:6379@16379,two.example,shard-id=5 slave aa 0 0 1 connected\n" +
		"cc fd00::3:6380@16380 slave,fail aa 0 0 1 disconnected\n" +
		"dd 10.0.0.4:6379@16379,four.example slave ee 0 0 1 connected\n"
	require.Equal(t, []string{"10.0.0.2:6379", "[fd00::3]:6380"}, slavesOf(text, "10.0.0.1:6379"))
	require.Equal(t, []string{"two.example:6379", "[fd00::3]:6380"}, slavesOf(text, "one.example:6379"))
	alive, all := countSlaves(text)
	require.Equal(t, []int{1, 2}, []int{alive, all})
}

func TestCountSlaves(t *testing.T) {
	t.Parallel()
	nodes := `07c3 127.0.0.1:30004@31004,hostname4 slave e7d1 0 1426238317239 4 connected
67ed 127.0.0.1:30002@31002,hostname2 master - 0 1426238316232 2 connected 5461-10922
6ec2 127.0.0.1:30005@31005,hostname5 slave,fail 67ed 0 1426238316232 5 connected
824f 127.0.0.1:30006@31006,hostname6 slave,fail? e7d1 0 1426238317741 6 connected
9999 127.0.0.1:30007@31007,hostname7 slave,fail e7d1 0 1426238317741 6 disconnected
e7d1 127.0.0.1:30001@31001,hostname1 myself,master - 0 0 1 connected 0-5460
`
	alive, all := countSlaves(nodes)
	require.Equal(t, []int{2, 3}, []int{alive, all}, "suspected replicas still count, failed ones do not")
	alive, all = countSlaves("")
	require.Equal(t, []int{0, 0}, []int{alive, all})
}
