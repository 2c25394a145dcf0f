// Command scale computes the machines for a deployment of capper with hundreds of millions of users, and simulates a
// large campaign (a blast) on these machines. The page docs/design/scale.md shows the output of command scale.
//
//	go run ./scripts/scale
package main

import (
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"

	"capper/internal/sizing"
)

func main() {
	if err := report(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "scale: error:", err)
		os.Exit(1)
	}
}

// These constants are the seconds of processor time for a decision about one user. The values for Redis masters, for
// the service, and for calls with one user are measurements from docs/benchmarks.md. The values for the campaign engine
// and for a replica are measurements from the first blast (large campaign) of the demo.
const (
	nearMaster  = 1.4e-6  // consecutive users, in calls with 65,536 users
	farMaster   = 6.1e-6  // random users, all with earlier sends
	nearService = 0.11e-6 // for a bitmap: 0.03, and 0.08 in the Redis client
	farService  = 0.32e-6 // 0.03, and 0.29 in the Redis client
	single      = 25e-6
	engineWork  = 0.03e-6
	replicaWork = 0.7e-6
)

// These constants are assumed prices in dollars per month; docs/design/scale.md explains them.
const (
	memoryPrice   = 5.0   // for 1 GiB of memory
	diskPrice     = 0.10  // for 1 GiB of disk space
	instancePrice = 120.0 // for an instance of the service with 4 cores and 8 GiB
	networkPrice  = 0.02  // for 1 GiB of traffic from one zone to another
	objectPrice   = 0.023 // for 1 GiB in S3
)

// The constant "instances" is the number of service instances in the assumed deployment: one instance in each of three
// availability zones, because a zone may fail.
const instances = 3

// The function "loads" returns the numbers of users and sends that docs/design/scale.md assumes, by name.
func loads() map[string]sizing.Load {
	load := func(users int64, density, calls float64) sizing.Load {
		return sizing.Load{Users: users, Density: density, Blast: 10_000_000, Within: 2 * time.Minute, Single: calls,
			Instances: instances}.WithDefaults()
	}
	return map[string]sizing.Load{"270 million": load(270e6, 0.063, 500), "1 billion": load(1e9, 0.233, 2000)}
}

// The variable "order" lists the names of the loads in the order of the output columns.
var order = []string{"270 million", "1 billion"}

func report(out io.Writer) error {
	if err := plans(out); err != nil {
		return err
	}
	fmt.Fprintln(out)
	return blasts(out)
}

// The function "plans" prints the machines, the memory and the costs for each assumed load.
func plans(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "plan\t%s\t%s\n", order[0], order[1])
	all := loads()
	for _, row := range rows {
		fmt.Fprint(w, row.name)
		for _, name := range order {
			fmt.Fprintf(w, "\t%s", row.value(all[name]))
		}
		fmt.Fprintln(w)
	}
	return w.Flush()
}

const gib = 1 << 30

// The variable "rows" contains the rows of the printed table of resources.
var rows = []struct {
	name  string
	value func(sizing.Load) string
}{
	{"masters × copies", func(l sizing.Load) string { return fmt.Sprintf("%d × %d", l.Shards, 1+l.Replicas) }},
	{"logs, one copy", func(l sizing.Load) string { return gibs(sizing.RedisData(l)) }},
	{"memory of a Redis machine", func(l sizing.Load) string { return gibs(sizing.RedisMachine(l)) }},
	{"memory of all Redis machines", func(l sizing.Load) string { return gibs(redisMemory(l)) }},
	{"disk of all Redis machines", func(l sizing.Load) string { return gibs(redisDisk(l)) }},
	{"copying a shard to a new replica", func(l sizing.Load) string {
		return fmt.Sprintf("%.0f s at 1 Gbit/s", sizing.RedisData(l)/float64(l.Shards)*8/1e9)
	}},
	{"instances, memory of each", func(l sizing.Load) string {
		return fmt.Sprintf("%d, %s", instances, gibs(sizing.ServiceMemory(l)))
	}},
	{"sends a day, 5 a user and week", func(l sizing.Load) string {
		return fmt.Sprintf("%.0f million", sendsADay(l)/1e6)
	}},
	{"replication a day, both copies", func(l sizing.Load) string { return gibs(sendsADay(l) * sizing.ToReplicas(l)) }},
	{"audit a month", func(l sizing.Load) string { return gibs(30 * auditDay(l)) }},
	{"money a month: Redis memory", func(l sizing.Load) string { return dollars(redisMemory(l) / gib * memoryPrice) }},
	{"… disks", func(l sizing.Load) string { return dollars(redisDisk(l) / gib * diskPrice) }},
	{"… instances", func(sizing.Load) string { return dollars(instances * instancePrice) }},
	{"… network between zones", func(l sizing.Load) string { return dollars(network(l)) }},
	{"… S3, a year of audit", func(l sizing.Load) string { return dollars(365 * auditDay(l) / gib * objectPrice) }},
	{"… all", func(l sizing.Load) string { return dollars(money(l)) }},
}

func redisMemory(l sizing.Load) float64 {
	return sizing.RedisMachine(l) * float64(l.Shards*(1+l.Replicas))
}

func redisDisk(l sizing.Load) float64 { return sizing.AppendOnly(l) * float64(l.Shards*(1+l.Replicas)) }

// sendsADay returns the number of recorded sends per day, if the longest window has l.Days days.
func sendsADay(l sizing.Load) float64 { return float64(l.Users) * l.Sends / l.Days }

// auditDay returns the size, in bytes, of a day's audit records (recorded decisions): two bytes for each send, and 35
// bytes for each call with one user.
func auditDay(l sizing.Load) float64 { return 2*sendsADay(l) + l.Single*86400*35 }

// The function "network" returns the monthly price of the network traffic to Redis, from Redis, and to the replicas.
// Two thirds of this traffic crosses the border of an availability zone.
func network(l sizing.Load) float64 {
	bytes := 30 * sendsADay(l) * (sizing.ToRedis(l) + sizing.FromRedis(l) + sizing.ToReplicas(l))
	return bytes * 2 / 3 / gib * networkPrice
}

func money(l sizing.Load) float64 {
	return redisMemory(l)/gib*memoryPrice + redisDisk(l)/gib*diskPrice + instances*instancePrice + network(l) +
		365*auditDay(l)/gib*objectPrice
}

func gibs(bytes float64) string { return fmt.Sprintf("%.3g GiB", bytes/gib) }

func dollars(n float64) string { return fmt.Sprintf("$%.0f", n) }

// The function "demo" returns the deployment of `make demo`: 3 Redis masters with one replica each, one instance and
// the campaign engine, on one machine. The argument "cores" is the machine's number of cores, and "recorded" is the
// fraction of users whose sends are recorded.
func demo(blast, users int, recorded, cores float64) System {
	return System{
		Name:          fmt.Sprintf("demo, blast %d, %.2f cores", blast, cores),
		Blast:         users,
		Call:          100_000,
		InFlight:      4,
		Recorded:      recorded,
		Instances:     1,
		InstanceCores: 2,
		Shards:        3,
		Replicas:      1,
		Engine:        engineWork,
		Service:       nearService,
		Master:        nearMaster,
		Replica:       replicaWork,
		RTT:           100 * time.Microsecond,
		Shared:        cores,
	}
}

// The function "deployed" returns the deployment for the load with the given name, with a separate machine for each
// process. The argument "open" is the number of parallel calls. The blast (large campaign) has 10 million random users,
// so every decision reads a different Redis key.
func deployed(name string, open int) System {
	l := loads()[name]
	return System{Name: fmt.Sprintf("%s, %d open", name, open), Blast: int(l.Blast), Call: 100_000, InFlight: open,
		Recorded: 1, Instances: instances, InstanceCores: 4, Shards: l.Shards, Replicas: l.Replicas, Engine: engineWork,
		Service: farService, Master: farMaster, Replica: replicaWork, RTT: time.Millisecond, Single: l.Single,
		SingleWork: single}
}

// The function "failing" returns a copy of the system s with a failover: the Redis master with most users is down for
// three seconds.
func failing(s System) System {
	s.Name += ", failover"
	s.DownFor = 3 * time.Second
	return s
}

// The function "systems" returns the deployments in docs/design/scale.md. For each blast (large campaign) of the demo,
// the system has as many cores as were available during the measurement.
func systems() []System {
	list := []System{
		demo(1, 1_000_000, 0.728, 1.07), demo(2, 1_000_000, 0.436, 1.16), demo(3, 1_000_000, 0.049, 1.04),
		demo(4, 959_002, 0.842, 1.10), demo(1, 1_000_000, 0.728, 2),
	}
	for _, name := range order {
		list = append(list, deployed(name, 1), deployed(name, 4), deployed(name, 16), failing(deployed(name, 4)))
	}
	return list
}

// The function "blasts" simulates the blast (large campaign) on each system, and prints the results.
func blasts(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "blast\ttook\tusers/s\tcall\tslowest\tmaster\treplica\tinstance\tto replicas\tone user waits")
	for _, s := range systems() {
		r := Simulate(s)
		rate := float64(s.Blast) / r.Took.Seconds()
		bits := rate * s.Recorded * replicated * float64(s.Replicas) * 8
		fmt.Fprintf(w, "%s\t%.1f s\t%.0f\t%.2f s\t%.2f s\t%.0f %%\t%.0f %%\t%.0f %%\t%.1f Gbit/s\t%.0f ms\n", s.Name,
			r.Took.Seconds(), rate, r.Median.Seconds(), r.Slowest.Seconds(), 100*r.MasterBusy, 100*r.ReplicaUse,
			100*r.Instance, bits/1e9, float64(r.Behind)/1e6)
	}
	return w.Flush()
}

// The constant "replicated" is the number of bytes that a Redis replica receives for a recorded send to a user with 5
// earlier sends: 12 × 6 + 64.5.
const replicated = 136.5
