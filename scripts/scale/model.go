package main

import (
	"math"
	"slices"
	"time"
)

// A System is a deployment of capper, together with a large campaign (the blast). The fields Engine, Service, Master
// and Replica are seconds of processor time for one user.
type System struct {
	Name string

	Blast    int     // number of users of the blast
	Call     int     // number of users in a call, at least 1
	InFlight int     // number of calls that the engine makes in parallel, at least 1
	Recorded float64 // fraction of the users whose send is recorded and replicated

	Instances     int
	InstanceCores float64 // number of cores of each instance
	Shards        int     // number of masters, at most 64
	Replicas      int     // number of replicas of each master

	Engine  float64 // work of the engine
	Service float64 // work of an instance, including its Redis client
	Master  float64 // work of a master for each decision
	Replica float64 // work of each replica for each recorded send
	RTT     time.Duration

	// Shared is the number of cores of a machine that all processes share. The value 0 means a separate machine for
	// each process.
	Shared float64
	// Single is the number of calls per second with one user, while the blast (large campaign) runs. SingleWork is the
	// processor time of a Redis master for such a call, in seconds.
	Single, SingleWork float64
	// DownFor is the duration of a failover. During the failover, the Redis master with most users does no work. The
	// failover begins one second after the beginning of the blast (large campaign).
	DownFor time.Duration
}

// Result holds the durations of the calls of a blast (large campaign) on a system, and the load of the processes.
type Result struct {
	Took       time.Duration
	Median     time.Duration // median duration of a call
	Slowest    time.Duration // duration of the slowest call
	MasterBusy float64       // used fraction of the core of the master with most users, including calls with one user
	ReplicaUse float64       // used fraction of a core of this master's replica
	Instance   float64       // used fraction of the cores of an instance
	Behind     time.Duration // maximum time for which a call with one user waits in Redis
}

const (
	tick       = 100 * time.Microsecond
	partitions = 64
	// pipelined is the maximum number of users whom an instance has sent to a master and who have no response yet: two
	// pipelines of 2,048 users (redisstore/dispatch).
	pipelined = 2 * 2048
)

// A server is a process of the simulated system, with a queue of work. The process does the work in the order of the
// queue.
type server struct {
	cores float64 // number of cores that it may use
	queue []piece
	done  float64 // seconds of processor time that it has used
	down  bool
}

// A piece is the work that one API call causes in one simulated process.
type piece struct {
	call *call
	work float64
}

// A call is a simulated API call. The call passes through the campaign engine, an instance, all Redis masters and their
// replicas.
type call struct {
	users int
	began time.Duration
	left  int // number of unfinished pieces in the current stage
	stage int
	ready time.Duration // earliest time at which the next stage begins
}

// These constants are the stages through which a simulated API call passes.
const (
	inEngine = iota
	inInstance
	inMasters
	inReplicas
	over
)

// A simulation is the state of a simulated system during a blast (large campaign). In a simulation, time advances in
// ticks (short steps).
type simulation struct {
	System
	now                       time.Duration
	engine, instance, masters []*server
	replicas                  []*server // one for each master, because all replicas of a master do the same work
	open                      []*call
	took                      []time.Duration
	unsent, next              int
	backlog                   float64 // maximum work that waited at the master with most users
}

// Simulate simulates the blast (large campaign) on the system, and returns the durations of the calls.
func Simulate(s System) Result {
	sim := &simulation{System: s, unsent: s.Blast,
		engine: servers(1, 1), instance: servers(s.Instances, s.InstanceCores),
		masters: servers(
			s.Shards,
			max(0.05, 1-s.Single*s.SingleWork*fullest(s.Shards)),
		), replicas: servers(s.Shards, 1)}
	for sim.unsent > 0 || len(sim.open) > 0 {
		sim.step()
	}
	return sim.result()
}

func servers(n int, cores float64) []*server {
	list := make([]*server, n)
	for i := range list {
		list[i] = &server{cores: cores}
	}
	return list
}

// The function "fullest" returns the fraction of all users on the Redis master with most users.
func fullest(shards int) float64 { return math.Ceil(partitions/float64(shards)) / partitions }

// shareOf returns the fraction of all users on the Redis master i. The numbers of partitions of any two Redis masters
// differ by at most one.
func shareOf(i, shards int) float64 {
	n := partitions / shards
	if i < partitions%shards {
		n++
	}
	return float64(n) / partitions
}

// The method "step" advances the time of the simulation by one tick (short step).
func (s *simulation) step() {
	for s.unsent > 0 && len(s.open) < s.InFlight {
		s.send()
	}
	s.work()
	s.now += tick
	for _, c := range s.open {
		if c.left == 0 && c.stage < over && s.now >= c.ready {
			s.advance(c)
		}
	}
	s.open = slices.DeleteFunc(s.open, func(c *call) bool { return c.stage == over })
}

// The method "send" starts the next API call of the simulated blast (large campaign).
func (s *simulation) send() {
	c := &call{users: min(s.Call, s.unsent), began: s.now, left: 1}
	s.unsent -= c.users
	s.open = append(s.open, c)
	s.engine[0].queue = append(s.engine[0].queue, piece{c, float64(c.users) * s.Engine})
}

// The method "work" lets every simulated process work for one tick (short step). If the processes on a shared machine
// need more processor time than the machine has, each process gets the same fraction of the time that it needs.
func (s *simulation) work() {
	all := slices.Concat(s.engine, s.instance, s.masters, s.replicas)
	s.masters[0].down = s.now >= time.Second && s.now < time.Second+s.DownFor
	factor := 1.0
	if s.Shared > 0 {
		wanted := 0.0
		for i, server := range all {
			wanted += server.wants() * s.copies(i, len(all))
		}
		factor = min(1, s.Shared*tick.Seconds()/wanted)
	}
	s.backlog = max(s.backlog, s.masters[0].waits())
	for _, server := range all {
		server.run(server.wants() * factor)
	}
}

// The method "copies" returns the number of processes that the simulated server i represents. The last servers in the
// list, as many as Redis masters exist, each represent all replicas of one Redis master.
func (s *simulation) copies(i, n int) float64 {
	if i >= n-s.Shards {
		return float64(s.Replicas)
	}
	return 1
}

// The method "waits" returns the processor time, in seconds, for the work in the server's queue.
func (s *server) waits() (work float64) {
	for _, p := range s.queue {
		work += p.work
	}
	return work
}

// The method "wants" returns the processor time, in seconds, that the server can use in one tick (short step).
func (s *server) wants() float64 {
	if s.down {
		return 0
	}
	return min(s.cores*tick.Seconds(), s.waits())
}

// The method "run" removes the given amount of work (processor time) from the server's queue.
func (s *server) run(work float64) {
	s.done += work
	for len(s.queue) > 0 && s.queue[0].work <= work+1e-12 {
		work -= s.queue[0].work
		s.queue[0].call.left--
		s.queue = s.queue[1:]
	}
	if len(s.queue) > 0 {
		s.queue[0].work -= work
	}
}

// The method "advance" adds the work of the next stage of a call to the queues of the servers.
func (s *simulation) advance(c *call) {
	c.stage++
	users := float64(c.users)
	switch c.stage {
	case inInstance:
		s.queue(c, s.instance[s.next%s.Instances], users*s.Service)
		s.next++
		c.ready = s.now + s.RTT/2
	case inMasters:
		for i, master := range s.masters {
			s.queue(c, master, users*shareOf(i, s.Shards)*s.Master)
		}
		c.ready = s.now + s.RTT/2
	case inReplicas:
		if s.Replicas > 0 {
			for i, replica := range s.replicas {
				s.queue(c, replica, users*shareOf(i, s.Shards)*s.Recorded*s.Replica)
			}
		}
		c.ready = s.now + s.RTT*2 // to the replica and back, then to the service and the engine
	case over:
		s.took = append(s.took, s.now-c.began)
	}
}

func (s *simulation) queue(c *call, to *server, work float64) {
	c.left++
	to.queue = append(to.queue, piece{c, work})
}

func (s *simulation) result() Result {
	slices.Sort(s.took)
	seconds := s.now.Seconds()
	r := Result{Took: s.now, Median: s.took[len(s.took)/2], Slowest: s.took[len(s.took)-1],
		MasterBusy: s.masters[0].done/seconds + s.Single*s.SingleWork*fullest(s.Shards),
		ReplicaUse: s.replicas[0].done / seconds}
	for _, i := range s.instance {
		r.Instance = max(r.Instance, i.done/seconds/s.InstanceCores)
	}
	behind := min(s.backlog, float64(s.Instances)*pipelined*s.Master)
	r.Behind = time.Duration(behind * float64(time.Second))
	return r
}
