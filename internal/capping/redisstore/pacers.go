package redisstore

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"capper/internal/capping/redisstore/dispatch"
	"capper/internal/capping/redisstore/fault"
	"capper/internal/capping/redisstore/script"
	"capper/internal/pacing"
)

// pacersConfig is the configuration of the type "pacers". Every field of pacersConfig must be set.
type pacersConfig struct {
	Dispatcher *dispatch.Dispatcher
	Scripts    script.Scripts
	Partition  func(group string) int // the partition of a group of pacers
	Prefixes   []string               // key prefixes of the partitions
	ClockSkew  time.Duration          // see dispatch.Config
	// Perform calls the function "work", which returns a run (the sending of commands), and returns the faults of this
	// run as one error.
	Perform func(work func() *dispatch.Run) error
}

// The type "pacers" keeps the logs of pacers (named rate limits) in Redis. The type "pacers" is safe for concurrent
// use.
type pacers struct {
	config  pacersConfig
	merging chan struct{} // capacity 1: a second caller waits and finds the log merged
	joints  joints
}

func newPacers(config pacersConfig) *pacers {
	p := &pacers{config: config, merging: make(chan struct{}, 1)}
	p.joints = joints{open: map[string]*joint{}, take: p.take}
	return p
}

// A place is the location of a group of pacers: the partition and the Redis keys.
type place struct {
	partition int
	keys      script.PacerKeys
}

func (p *pacers) placeOf(group string) place { return p.placeAt(p.config.Partition(group)) }

func (p *pacers) placeAt(partition int) place {
	return place{partition, script.PacerKeys{Prefix: p.config.Prefixes[partition]}}
}

// GroupsOfOneSlot returns the groups of pacers that share a Redis hash slot with an earlier group. In the returned map,
// the key is the name of a group, and the value is the name of the earlier group in the same slot.
func GroupsOfOneSlot(groups []string) map[string]string {
	first, shared := map[int]string{}, map[string]string{}
	for _, group := range groups {
		partition := script.Standard.PacerPartition(group)
		if other, taken := first[partition]; taken && other != group {
			shared[group] = other
		} else {
			first[partition] = group
		}
	}
	return shared
}

// The method Wait waits until all combined permit requests have ended, also those whose callers have stopped waiting.
// Combined requests end soon after the topology is closed.
func (p *pacers) Wait() { p.joints.runs.Wait() }

// ofPermits is the beginning of the error text for a permit request that the store did not decide.
const ofPermits = "the call for permits is"

// mostMerges is the maximum number of attempts of one permit request. Each attempt may merge (shorten) a full log of a
// pacer.
const mostMerges = 2 * pacing.MaxPacers

// errFull reports that the log of a pacer was full again after each merge (shortening of the log).
var errFull = errors.New("the stored log of a pacer (rate limiter) is still full after its entries were merged")

// Take implements TakePermits of pacing.Store.
func (p *pacers) Take(ctx context.Context, ask *pacing.Ask) (pacing.Grant, error) {
	if err := ask.Check(); err != nil {
		return pacing.Grant{}, err
	}
	if joins(ask) {
		return p.joints.Take(ctx, ask)
	}
	return p.take(ctx, ask, nil)
}

// The method "take" takes the permits of the request "ask" with one call of pace.lua. If the argument "joined" is not
// nil, the permits are for several combined requests. If the store must handle some of the combined requests
// separately, "take" returns a *repeatedError.
func (p *pacers) take(ctx context.Context, ask *pacing.Ask, joined []*pacing.Ask) (pacing.Grant, error) {
	for range mostMerges {
		take := &takePermits{pacers: p, ask: ask, joined: joined}
		at := p.placeOf(ask.Group())
		if err := p.do(ctx, ofPermits, take, at, ask.Permits > 0, take.addFaults); err != nil {
			return pacing.Grant{}, err
		}
		switch paced := &take.paced; {
		case paced.Reused:
			return pacing.Grant{}, &pacing.ReuseError{}
		case paced.Repeated != nil:
			return pacing.Grant{}, &repeatedError{paced.Repeated}
		case paced.Full >= 0:
			if err := p.merge(ctx, paced.Now, &ask.Targets[paced.Full]); err != nil {
				return pacing.Grant{}, err
			}
		default:
			return paced.Grant, nil
		}
	}
	return pacing.Grant{}, errFull
}

// A repeatedError reports that the store already remembers some of several combined permit requests. If the store
// remembers one of the combined requests, pace.lua has taken no permits for any of them.
type repeatedError struct{ asks []int }

func (*repeatedError) Error() string { return "one of the combined requests is a repetition" }

// The method Forget resets a pacer: Forget removes all grants of the pacer; see ForgetPacer of pacing.Store. If the
// argument "group" is pacing.AnyGroup, Forget removes the grants in every partition.
func (p *pacers) Forget(ctx context.Context, pacer, group string) error {
	if group != pacing.AnyGroup {
		return p.forgetAt(ctx, pacer, p.placeOf(group))
	}
	var all errgroup.Group
	for partition := range p.config.Prefixes {
		all.Go(func() error { return p.forgetAt(ctx, pacer, p.placeAt(partition)) })
	}
	return all.Wait()
}

func (p *pacers) forgetAt(ctx context.Context, pacer string, at place) error {
	forget := &forgetPacer{pacers: p, pacer: pacer, at: at}
	return p.do(ctx, "forgetting the pacer is", forget, at, true, func(f *dispatch.Faults) {
		f.AddUndecided(fault.WrongType, forget.bad.WrongType, errPacerWrongType)
	})
}

// The method "do" runs one command of an operation in the partition of the argument "at". After the run, "do" calls the
// function "then" if it is not nil. The function "then" adds the faults that the reply reports.
func (p *pacers) do(ctx context.Context, what string, op dispatch.Operation, at place, durable bool,
	then func(*dispatch.Faults)) error {
	return p.config.Perform(func() *dispatch.Run {
		r := p.config.Dispatcher.NewRun(op, durable)
		r.Faults.What = what
		r.Add(op, at.partition)
		r.Do(ctx)
		if then != nil {
			then(&r.Faults)
		}
		return r
	})
}

var (
	errPacerWrongType = errors.New(
		"the Redis key of a pacer (rate limiter) must hold a string, but another program wrote the key: " +
			"find the program, and rename or delete its key")
	errPacerCorrupt = errors.New("the stored log of a pacer (rate limiter) is not valid: reset the pacer")
)
