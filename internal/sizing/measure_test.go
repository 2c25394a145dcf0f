package sizing_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/capping/pebblestore"
	"capper/internal/capping/redisstore"
	"capper/internal/capping/redisstore/topology"
	"capper/internal/sizing"
	"capper/internal/testcluster"
	"capper/internal/testkit"
)

func TestMain(m *testing.M) { os.Exit(testcluster.Run(m)) }

// shape is users as they may be.
type shape struct {
	name    string
	density float64
	users   []capping.UserID
}

// shapes are all ids, and one in 8 and one in 27 by chance.
func shapes(n int) []shape {
	dense := make([]capping.UserID, 2*n)
	for i := range dense {
		dense[i] = capping.UserID(i)
	}
	return []shape{{"every id", 1, dense}, {"one id in 8 by chance", 1.0 / 8, byChance(n, 8)},
		{"one id in 27 by chance", 1.0 / 27, byChance(n, 27)}}
}

// byChance is about n ids, one in so many.
func byChance(n, in int) (users []capping.UserID) {
	lot := rand.New(rand.NewPCG(1, uint64(in)))
	for id := range capping.UserID(n * in) {
		if lot.IntN(in) == 0 {
			users = append(users, id)
		}
	}
	return users
}

// alone is users each of whom is alone in his bucket.
func alone(n int) shape { return shape{"one id in 190", 1.0 / 190, everyNth(n, 190)} }

// everyNth is so many ids, far from those of the shapes.
func everyNth(n, step int) (users []capping.UserID) {
	for i := range n {
		users = append(users, 3_000_000_000+capping.UserID(i*step))
	}
	return users
}

// blast records a send to all users, in calls of 50,000.
func blast(t testing.TB, s capping.Store, message string, users []capping.UserID) {
	t.Helper()
	for from := 0; from < len(users); from += 50_000 {
		part := users[from:min(from+50_000, len(users))]
		verdicts := make([]capping.Verdict, len(part))
		b := &capping.Batch{
			Message: capping.Message{ID: message}, Token: capping.Message{ID: message}.Token(), Users: part,
			Groups: make([]uint8, len(part)),
			Rules:  [][]capping.Rule{{{Max: 900, Hold: time.Hour.Milliseconds()}}}, Record: true,
			Retention: 7 * 24 * time.Hour,
		}
		require.NoError(t, s.Filter(t.Context(), b, verdicts))
		for _, v := range verdicts {
			if v.Outcome != capping.Allowed { // a check by require of each user costs more than the call itself
				require.Equal(t, capping.Allowed, v.Outcome)
			}
		}
	}
}

// facts is what the server says of itself.
func facts(t testing.TB, addr string) map[string]string {
	t.Helper()
	var facts map[string]string
	require.NoError(t, testkit.InTime(func() error {
		report, err := redisstore.Survey(t.Context(), redisstore.Config{Addrs: []string{addr},
			ReplicaAcks: redisstore.FixedAcks(0)})
		if err != nil {
			return err
		}
		require.NotEmpty(t, report.Nodes)
		facts = report.Nodes[0].Facts
		return report.Nodes[0].Err
	}))
	return facts
}

// open is a store that is closed with the test.
func open(t testing.TB, config redisstore.Config) (s *redisstore.Store) {
	t.Helper()
	require.NoError(t, testkit.InTime(func() (err error) {
		s, err = redisstore.Open(t.Context(), config)
		return err
	}))
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func number(t testing.TB, facts map[string]string, name string) float64 {
	t.Helper()
	n, err := strconv.ParseFloat(facts[name], 64)
	require.NoError(t, err, name)
	return n
}

// measured is how many users there are, times CAPPER_SIZING_FACTOR for whoever has an hour.
func measured() int {
	factor, err := strconv.Atoi(os.Getenv("CAPPER_SIZING_FACTOR"))
	if err != nil {
		factor = 1
	}
	return 60_000 * factor
}

// The formula of Redis' memory is that of the server's own count, within a tenth.
func TestRedisMemory(t *testing.T) {
	t.Parallel()
	for _, of := range shapes(measured() / 2) {
		t.Run(of.name, func(t *testing.T) {
			t.Parallel()
			// Without these settings, Redis allocates 26 kB when a command is called for the first time, and keeps
			// some kB of each call that a busy machine makes slow.
			server := testcluster.Start(t, testcluster.Options{Masters: 3,
				Settings: []string{"latency-tracking no", "slowlog-log-slower-than -1"}})
			s := open(t, redisstore.Config{Addrs: server.Addrs, ReplicaAcks: redisstore.FixedAcks(0),
				Namespace: testkit.Namespace()})
			used := func() float64 { return settled(t, server.Addrs) }
			blast(t, s, "a warm-up", everyNth(200, 97*190)) // scripts, connections and tables are there
			before := used()
			for sends := 1; sends <= 10; sends++ {
				blast(t, s, fmt.Sprint("campaign ", sends), of.users)
				if sends != 1 && sends != 3 && sends != 5 && sends != 10 {
					continue
				}
				load := sizing.Load{Users: int64(len(of.users)), Sends: float64(sends),
					Density: of.density}.WithDefaults()
				load.Messages, load.Days = float64(sends), 1
				got, want := used()-before, sizing.RedisData(load)+sizing.RedisMessages(load)
				t.Logf("%s, %d sends: %.1f bytes a user, the formula says %.1f: %+.1f %%", of.name, sends,
					got/float64(len(of.users)), want/float64(len(of.users)), 100*(want/got-1))
				require.InEpsilon(t, got, want, 0.10)
			}
		})
	}
}

// settled is the memory of all servers but that of connections and scripts, when tables that grew have moved to
// their new size.
func settled(t testing.TB, addrs []string) (all float64) {
	t.Helper()
	for _, addr := range addrs {
		client := redis.NewClient(&redis.Options{Addr: addr, ReadTimeout: testkit.Patience})
		testkit.Eventually(t, func() bool {
			tables, err := client.Do(t.Context(), "debug", "htstats", 0).Text()
			require.NoError(t, err)
			return !strings.Contains(tables, "rehashing target")
		})
		all += withoutConnections(t, client)
		require.NoError(t, client.Close())
	}
	return all
}

var totalMemory = regexp.MustCompile(`tot-mem=(\d+)`)

// withoutConnections is the memory of a server but that of its connections and scripts. CLIENT LIST computes the
// memory of each connection at once. INFO's mem_clients_normal is up to a second old.
func withoutConnections(t testing.TB, client *redis.Client) float64 {
	t.Helper()
	var info, clients *redis.Cmd
	_, err := client.TxPipelined(t.Context(), func(tx redis.Pipeliner) error {
		info = tx.Do(t.Context(), "info", "memory")
		clients = tx.Do(t.Context(), "client", "list", "type", "normal")
		return nil
	})
	require.NoError(t, err)
	of := topology.ParseInfo(text(t, info))
	used := number(t, of, "used_memory") - number(t, of, "mem_cluster_links") - number(t, of, "mem_aof_buffer")
	used -= number(t, of, "used_memory_scripts") // a busy store loads some scripts later than others
	for _, m := range totalMemory.FindAllStringSubmatch(text(t, clients), -1) {
		n, err := strconv.ParseFloat(m[1], 64)
		require.NoError(t, err)
		used -= n
	}
	return used
}

func text(t testing.TB, answer *redis.Cmd) string {
	t.Helper()
	text, err := answer.Text()
	require.NoError(t, err)
	return text
}

// What goes over the wire, and to a replica, for each user of a blast.
func TestBytesOnTheWire(t *testing.T) {
	t.Parallel()
	for _, of := range append(shapes(30_000), alone(20_000)) {
		t.Run(of.name, func(t *testing.T) {
			t.Parallel()
			server := testcluster.Single(t, testcluster.Options{Replicas: 1})
			s := open(t, redisstore.Config{Addrs: server.Addrs, Namespace: testkit.Namespace()})
			for sends := range 4 {
				blast(t, s, fmt.Sprint("campaign ", sends), of.users)
			}
			before := facts(t, server.Addrs[0])
			blast(t, s, "the fifth", of.users)
			after := facts(t, server.Addrs[0])
			per := func(name string) float64 {
				return (number(t, after, name) - number(t, before, name)) / float64(len(of.users))
			}
			load := sizing.Load{Users: int64(len(of.users)), Sends: 4, Density: of.density, Blast: int64(len(of.users)),
				Replicas: 1}.WithDefaults()
			in, out, stream := per("total_net_input_bytes"), per("total_net_output_bytes"), per("master_repl_offset")
			t.Logf("%s: to Redis %.2f (%.2f), from it %.2f (%.2f), to a replica %.2f (%.2f)", of.name, in,
				sizing.ToRedis(load), out-stream, sizing.FromRedis(load), stream, sizing.ToReplicas(load))
			t.Logf("%s: fragmentation %s, AOF %.1f bytes a user", of.name, after["mem_fragmentation_ratio"],
				number(t, after, "aof_current_size")/float64(len(of.users)))
			require.InEpsilon(t, stream, sizing.ToReplicas(load), 0.10)
		})
	}
}

// The formula of the embedded store's disk is what the directory holds.
func TestEmbeddedDisk(t *testing.T) {
	t.Parallel()
	for _, of := range shapes(measured()) {
		t.Run(of.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "log.db")
			s, err := pebblestore.Open(t.Context(), pebblestore.Config{Path: dir})
			require.NoError(t, err)
			for sends := 1; sends <= 5; sends++ {
				blast(t, s, fmt.Sprint("campaign ", sends), of.users)
			}
			require.NoError(t, s.Close())
			load := sizing.Load{Users: int64(len(of.users)), Sends: 5, Density: of.density}.WithDefaults()
			got := diskOf(t, dir)
			t.Logf("%s: %.1f bytes a user, data by the formula %.1f, room %.1f", of.name, got/float64(len(of.users)),
				sizing.EmbeddedData(load)/float64(len(of.users)), sizing.EmbeddedDisk(load)/float64(len(of.users)))
			require.Less(t, got, sizing.EmbeddedDisk(load))
		})
	}
}

// A small store takes the room that its write-ahead logs are given in advance, however few users it has.
func TestEmbeddedDiskOfFewUsers(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "log.db")
	s, err := pebblestore.Open(t.Context(), pebblestore.Config{Path: dir})
	require.NoError(t, err)
	all := make([]uint32, 310_000)
	for i := range all {
		all[i] = uint32(i) * 3
	}
	most := 0.0
	for users := range slices.Chunk(all, 10_000) {
		blast(t, s, "campaign", capping.AppendUsers(nil, users))
		most = max(most, allottedTo(t, dir))
	}
	require.NoError(t, s.Close())
	load := sizing.Load{Users: int64(len(all)), Sends: 1, Density: 1. / 3}.WithDefaults()
	t.Logf("%.0f MiB at most, %.0f MiB when closed, room %.0f MiB", most/(1<<20), allottedTo(t, dir)/(1<<20),
		sizing.EmbeddedDisk(load)/(1<<20))
	require.Less(t, most, sizing.EmbeddedDisk(load))
}

// allottedTo is what the files take of the disk, also where nothing is written yet.
func allottedTo(t testing.TB, dir string) (bytes float64) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(_ string, e os.DirEntry, err error) error {
		if os.IsNotExist(err) {
			return nil
		}
		if err != nil || e.IsDir() {
			return err
		}
		about, err := e.Info()
		if os.IsNotExist(err) { // compacted meanwhile
			return nil
		}
		if sys, ok := about.Sys().(*syscall.Stat_t); ok {
			bytes += float64(sys.Blocks) * 512
		}
		return err
	}))
	return bytes
}

func diskOf(t testing.TB, dir string) (bytes float64) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(_ string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		about, err := e.Info()
		bytes += float64(about.Size())
		return err
	}))
	return bytes
}
