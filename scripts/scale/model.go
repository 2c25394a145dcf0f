package main

import (
	"math"
	"slices"
	"time"
)

// System is a deployment and the blast that it decides. Work is in CPU seconds for one user.
type System struct {
	Name string

	Blast    int     // users of the blast
	Call     int     // users of a call, 1 at least
	InFlight int     // calls that the engine has open at the same time, 1 at least
	Recorded float64 // share of the users whose send is recorded and goes to the replicas

	Instances     int
	InstanceCores float64 // cores of each instance
	Shards        int     // masters, 64 at most
	Replicas      int     // replicas of each master

	Engine  float64 // work of the engine
	Service float64 // work of an instance, its Redis client included
	Master  float64 // work of a master, for each decision
	Replica float64 // work of each replica, for each recorded send
	RTT     time.Duration

	// Shared is the number of cores that all processes share on one machine; 0 means that each process has its own
	// machine.
	Shared float64
	// Single is the number of calls a second with one user, at the same time as the blast. SingleWork is the CPU time
	// of such a call in a master.
	Single, SingleWork float64
	// DownFor is the duration of a failover, in which the fullest master does no work. It begins a second after the
	// blast.
	DownFor time.Duration
}

// Result is the effect of a blast on a system.
type Result struct {
	Took       time.Duration
	Median     time.Duration // median duration of a call
	Slowest    time.Duration // slowest call
	MasterBusy float64       // share of the fullest master's core, single calls included
	ReplicaUse float64       // share of a core of a replica of the fullest master
	Instance   float64       // share of the cores of an instance
	Behind     time.Duration // the most that a call for one user waits in Redis behind the blast
}

const (
	tick       = 100 * time.Microsecond
	partitions = 64
	// pipelined is the most users that an instance has in flight to a master: two pipelines of 2,048 users
	// (redisstore/dispatch).
	pipelined = 2 * 2048
)

// server is a queue of work that is done in order.
type server struct {
	cores float64 // that it may use at a time
	queue []piece
	done  float64 // CPU seconds
	down  bool
}

// piece is the work of a call in one server.
type piece struct {
	call *call
	work float64
}

// call is a call on its way from the engine to an instance, to all masters, to their replicas, and back.
type call struct {
	users int
	began time.Duration
	left  int // pieces of the stage that are not done
	stage int
	ready time.Duration // the next stage begins at this time or later
}

// These are the stages of a call.
const (
	inEngine = iota
	inInstance
	inMasters
	inReplicas
	over
)

// simulation is a system during a blast. Its time advances in ticks.
type simulation struct {
	System
	now                       time.Duration
	engine, instance, masters []*server
	replicas                  []*server // one for each master, because all replicas of a master do the same
	open                      []*call
	took                      []time.Duration
	unsent, next              int
	backlog                   float64 // the most work that waited at the fullest master
}

// Simulate runs the blast on the system.
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

// fullest returns the share of the users on the fullest master.
func fullest(shards int) float64 { return math.Ceil(partitions/float64(shards)) / partitions }

// shareOf returns the share of the users on master i. The numbers of partitions on two masters differ by at most one.
func shareOf(i, shards int) float64 {
	n := partitions / shards
	if i < partitions%shards {
		n++
	}
	return float64(n) / partitions
}

// step advances the simulation by one tick.
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

// send begins the next call.
func (s *simulation) send() {
	c := &call{users: min(s.Call, s.unsent), began: s.now, left: 1}
	s.unsent -= c.users
	s.open = append(s.open, c)
	s.engine[0].queue = append(s.engine[0].queue, piece{c, float64(c.users) * s.Engine})
}

// work lets every server work for a tick. If the servers on a shared machine want more time than it has, each gets a
// part.
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

// copies returns the number of processes that server i represents. The last Shards servers represent all replicas of
// a master.
func (s *simulation) copies(i, n int) float64 {
	if i >= n-s.Shards {
		return float64(s.Replicas)
	}
	return 1
}

// waits returns the CPU seconds of the work in the queue.
func (s *server) waits() (work float64) {
	for _, p := range s.queue {
		work += p.work
	}
	return work
}

// wants returns the CPU seconds that the server can use in a tick.
func (s *server) wants() float64 {
	if s.down {
		return 0
	}
	return min(s.cores*tick.Seconds(), s.waits())
}

// run does an amount of work from the queue.
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

// advance passes a call to the servers of its next stage.
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
		c.ready = s.now + s.RTT*2 // to the replica and back, and to the service and the engine
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
