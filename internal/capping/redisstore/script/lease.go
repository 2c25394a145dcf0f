package script

import (
	"strconv"
	"time"

	"capper/internal/pacing"
)

// leasesLast is the TTL of the Redis keys with the leases (time limits for unused permits) of a group of pacers. Each
// call that begins or extends a lease sets the TTL leasesLast again.
const leasesLast = 2 * pacing.MaxLease

// leaseKeys returns the Redis keys that a call of lease.lua needs, in the order in which the script expects them.
func (k PacerKeys) leaseKeys() []string {
	return []string{k.Prefix + "pl:lease-ends", k.Prefix + "pl:lease-calls"}
}

// KeepLease encodes a call of lease.lua, which begins or extends a lease (time limit for unused permits) of a request
// for permits. The script lease.lua counts time in milliseconds, so a lease lasts up to 2 ms longer than requested, and
// never ends early. The encoded Redis command of KeepLease, EndedLeases or RemoveLease is complete only after the
// caller has called StampPace, which adds the time.
func (a *Args) KeepLease(s *Script, keys PacerKeys, r pacing.Request, lasts time.Duration, call []byte) {
	a.lease(s, keys, 'k', r[:], milliseconds(lasts+2*time.Millisecond-1), call, milliseconds(leasesLast))
}

// EndedLeases encodes a call of lease.lua, which lists leases (time limits for unused permits) that have ended.
func (a *Args) EndedLeases(s *Script, keys PacerKeys, most int) {
	a.lease(s, keys, 'e', strconv.AppendInt(nil, int64(most), 10))
}

// RemoveLease encodes a call of lease.lua, which removes a lease (time limit for unused permits) that has ended.
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

// DecodeKept decodes the reply of lease.lua if the call begins or extends a lease (time limit for unused permits).
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

// DecodeEnded decodes the reply of lease.lua if the call lists ended leases (time limits for unused permits).
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
