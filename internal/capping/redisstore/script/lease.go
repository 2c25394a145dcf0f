package script

import (
	"strconv"
	"time"

	"capper/internal/pacing"
)

// leasesLast is the TTL of the leases of a group of pacers, after the latest call that began or extended a lease.
const leasesLast = 2 * pacing.MaxLease

// leaseKeys returns the Redis keys of a call of lease.lua, in the script's order.
func (k PacerKeys) leaseKeys() []string {
	return []string{k.Prefix + "pl:lease-ends", k.Prefix + "pl:lease-calls"}
}

// KeepLease encodes the call of lease.lua that begins or extends a lease of a request for permits. The script counts
// time in milliseconds, so the lease lasts up to 2 ms longer, and never ends early. The caller completes the command of
// KeepLease, and the other calls of lease.lua, with StampPace.
func (a *Args) KeepLease(s *Script, keys PacerKeys, r pacing.Request, lasts time.Duration, call []byte) {
	a.lease(s, keys, 'k', r[:], milliseconds(lasts+2*time.Millisecond-1), call, milliseconds(leasesLast))
}

// EndedLeases encodes the call of lease.lua that lists leases that have ended.
func (a *Args) EndedLeases(s *Script, keys PacerKeys, most int) {
	a.lease(s, keys, 'e', strconv.AppendInt(nil, int64(most), 10))
}

// RemoveLease encodes the call of lease.lua that removes a lease that has ended.
func (a *Args) RemoveLease(s *Script, keys PacerKeys, r pacing.Request) { a.lease(s, keys, 'r', r[:]) }

func (a *Args) lease(s *Script, keys PacerKeys, action byte, rest ...[]byte) {
	a.begin(s)
	names := keys.leaseKeys()
	for _, name := range names {
		a.buf = append(a.buf, name...)
		a.endKey()
	}
	a.users = append(a.users[:0], a.head[:stampSize]...)
	a.finish(len(names), append([][]byte{{action}, a.users}, rest...)...)
}

// DecodeKept decodes the reply of lease.lua to a call that begins or extends a lease.
func DecodeKept(reply string, bad *BadLogs) (pacing.LeaseState, error) {
	switch reply {
	case string(pacing.LeaseBegun), string(pacing.LeaseExtended), string(pacing.LeaseEnded):
		return pacing.LeaseState(reply[0]), nil
	case "T":
		bad.WrongType++
		return 0, nil
	}
	return 0, ErrReply
}

// DecodeEnded decodes the reply of lease.lua to a call that lists ended leases.
func DecodeEnded(list []string) (ended []pacing.Lease, err error) {
	if len(list)%3 > 0 {
		return nil, ErrReply
	}
	for ; len(list) > 0; list = list[3:] {
		age, err := strconv.ParseInt(list[1], 10, 64)
		if len(list[0]) != len(pacing.Request{}) || err != nil || age < 0 {
			return nil, ErrReply
		}
		ended = append(ended, pacing.Lease{Request: pacing.Request([]byte(list[0])),
			Ended: time.Duration(min(age, pacing.MaxWait.Milliseconds())) * time.Millisecond, Call: []byte(list[2])})
	}
	return ended, nil
}
