package redisstore

import (
	"context"
	"time"

	"capper/internal/capping/redisstore/dispatch"
	"capper/internal/capping/redisstore/fault"
	"capper/internal/capping/redisstore/script"
	"capper/internal/pacing"
)

// KeepLease begins or extends the lease (time limit for unused permits) of a permit request; see pacing.Leases.
func (s *Store) KeepLease(ctx context.Context, group string, r pacing.Request, lasts time.Duration, call []byte) (
	pacing.LeaseState, error) {
	keep := &keepLease{pacers: s.pacers, at: s.pacers.placeOf(group), request: r, lasts: lasts, call: call}
	err := s.pacers.do(ctx, "the call that keeps a lease is", keep, keep.at, true, func(f *dispatch.Faults) {
		f.AddUndecided(fault.WrongType, keep.bad.WrongType, errPacerWrongType)
	})
	return keep.state, err
}

// EndedLeases returns the ended leases (time limits for unused permits) of permit requests to pacers of the group; see
// pacing.Leases.
func (s *Store) EndedLeases(ctx context.Context, group string, most int) ([]pacing.Lease, error) {
	list := &endedLeases{pacers: s.pacers, at: s.pacers.placeOf(group), most: most}
	err := s.pacers.do(ctx, "the list of ended leases is", list, list.at, false, nil)
	return list.ended, err
}

// RemoveLease removes the lease (time limit for unused permits) of a permit request if the lease has ended; see
// pacing.Leases.
func (s *Store) RemoveLease(ctx context.Context, group string, r pacing.Request) error {
	remove := &removeLease{pacers: s.pacers, at: s.pacers.placeOf(group), request: r}
	return s.pacers.do(ctx, "the removal of a lease is", remove, remove.at, false, nil)
}

// A keepLease operation begins or extends a lease (time limit for unused permits) of a permit request.
type keepLease struct {
	pacers  *pacers
	at      place
	request pacing.Request
	lasts   time.Duration
	call    []byte
	state   pacing.LeaseState
	bad     script.BadLogs
}

// The method Encode sets the arguments of lease.lua.
func (o *keepLease) Encode(c *dispatch.Command) {
	c.Args.KeepLease(o.pacers.config.Scripts.Lease, o.at.keys, o.request, o.lasts, o.call)
}

// The method Stamp sets the time of the call, so that Redis rejects a late command. The lease (time limit for unused
// permits) is then not extended after the caller has stopped waiting.
func (o *keepLease) Stamp(c *dispatch.Command, at dispatch.Stamp) {
	c.Args.StampPace(at.Now, o.pacers.config.ClockSkew)
}

// The method Apply decodes the reply of lease.lua. A repeated command may extend a lease (time limit for unused
// permits) that the first attempt began.
func (o *keepLease) Apply(c *dispatch.Command) (n int, err error) {
	o.state, err = script.DecodeKept(c.Reply, &o.bad)
	return 0, err
}

// An endedLeases operation lists the ended leases (time limits for unused permits) of one group of pacers.
type endedLeases struct {
	pacers *pacers
	at     place
	most   int
	ended  []pacing.Lease
}

// The method Encode sets the arguments of lease.lua.
func (o *endedLeases) Encode(c *dispatch.Command) {
	c.Args.EndedLeases(o.pacers.config.Scripts.Lease, o.at.keys, o.most)
}

// The method Stamp sets the time of the call.
func (o *endedLeases) Stamp(c *dispatch.Command, at dispatch.Stamp) {
	c.Args.StampPace(at.Now, o.pacers.config.ClockSkew)
}

// The method Apply decodes the reply of lease.lua.
func (o *endedLeases) Apply(c *dispatch.Command) (n int, err error) {
	o.ended, err = script.DecodeEnded(c.List)
	return 0, err
}

// A removeLease operation removes an ended lease (time limit for unused permits).
type removeLease struct {
	pacers  *pacers
	at      place
	request pacing.Request
	bad     script.BadLogs
}

// The method Encode sets the arguments of lease.lua.
func (o *removeLease) Encode(c *dispatch.Command) {
	c.Args.RemoveLease(o.pacers.config.Scripts.Lease, o.at.keys, o.request)
}

// The method Stamp sets the time of the call.
func (o *removeLease) Stamp(c *dispatch.Command, at dispatch.Stamp) {
	c.Args.StampPace(at.Now, o.pacers.config.ClockSkew)
}

// The method Apply decodes the reply of lease.lua.
func (o *removeLease) Apply(c *dispatch.Command) (int, error) {
	return 0, script.DecodeErased(c.Reply, &o.bad)
}
