//go:build storms

package redisstore

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/capping/redisstore/topology"
	"capper/internal/testcluster"
)

// operated are the ACL lines that let a field's servers run while their user default has no rights.
var operated = []string{
	"user " + operator + " on >" + leastUser + " ~* &* +@all", "masteruser " + operator, "masterauth " + leastUser,
}

// endings are the ways in which a server ends.
var endings = []struct {
	name string
	end  func(*testcluster.Cluster, string) error
}{{"kill -9", (*testcluster.Cluster).Kill}, {"SIGTERM", (*testcluster.Cluster).Shut}}

// droppingShards restart both copies of a shard under "user default off". Redis then drops the scripts' writes while
// it loads its append-only file. The shard's partitions are quarantined, and no user exceeds the limit. The line is
// then repaired, which restores nothing, and a restart of the stores continues with the remaining data.
var droppingShards = restartedShards("all of one shard drops records",
	func(testing.TB) string { return "user default off" },
	func(f *field, s shard) {
		f.storming.loses(otherShards(f, s))
	},
	func(f *field, s shard) {
		f.barred()
		grantDefault(f, s.master, "on", "nopass", "~*", "&*", "+@all")
		grantDefault(f, s.replica, "on", "nopass", "~*", "&*", "+@all")
		f.heal()
		f.storming.answered(f, 40)
		f.barred()
		require.Empty(f, f.storming.overGranted(), "granted more than the limit before anybody accepted the loss")
		f.beginAnew()
	})

// documentedShards restart both copies of a shard under the documented ACL line, which loses nothing.
var documentedShards = restartedShards("all of one shard restarts under the documented rights", documentedDefault,
	func(*field, shard) {},
	func(f *field, s shard) {
		grantDefault(f, s.master, "nopass")
		grantDefault(f, s.replica, "nopass")
	})

// documentedDefault returns the documented ACL line of the user default.
func documentedDefault(t testing.TB) string {
	text, err := os.ReadFile("../../../deploy/redis.acl")
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "user default ") {
			return strings.TrimSpace(strings.ReplaceAll(line, "CHANGE-ME", leastUser))
		}
	}
	t.Fatal("deploy/redis.acl has no line of the user default")
	return ""
}

// restartedShards end both copies of a shard in different ways, and start them again with the line in their file. The
// function after repairs the effects of the line.
func restartedShards(name string, line func(testing.TB) string, before, after func(*field, shard)) (kinds []breakage) {
	for _, ending := range endings {
		kinds = append(kinds, breakage{name + ", " + ending.name, otherShards, func(f *field, s shard) {
			before(f, s)
			for _, addr := range []string{s.replica, s.master} {
				require.NoError(f, ending.end(f.cluster, addr))
			}
			f.storming.leavesOpen(f)
			for _, addr := range []string{s.master, s.replica} {
				f.restartWith(addr, line(f))
			}
			after(f, s)
		}})
	}
	return kinds
}

// restartWith starts an ended server with one more line in its file.
func (f *field) restartWith(addr, line string) {
	f.Helper()
	path := filepath.Join(f.cluster.Data(addr), "redis.conf")
	conf, err := os.ReadFile(path)
	require.NoError(f, err)
	require.NoError(f, os.WriteFile(path, slices.Concat(conf, []byte(line+"\n")), 0o600))
	require.NoError(f, f.cluster.Restart(addr))
	require.NoError(f, os.WriteFile(path, conf, 0o600))
}

// barred waits until every store reports that a server dropped records, and has no other reason for a quarantine.
func (f *field) barred() {
	f.Helper()
	for _, store := range f.stores {
		f.until("partitions are barred", func() bool {
			reasons := store.barredPartitions()
			return len(reasons) == 1 && reasons[topology.Dropped] > 0
		})
	}
}

// beginAnew makes all stores continue with the remaining data, like a restart of capper.
func (f *field) beginAnew() {
	f.Helper()
	for _, store := range f.stores {
		f.until("a store begins anew", func() bool { return store.fleet.start(f.Context()) == nil })
	}
}
