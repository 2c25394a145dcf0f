package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/bits"

	"capper/internal/segments"
)

// The type Users describes synthetic users: a range of ids, and the percentage of users in each segment. The same seed
// always yields the same synthetic users.
type Users struct {
	First, Count uint32  // the ids First to First+Count-1
	Shares       []share // percentages of the segments, together at most 100 %; all other users are in no segment
	// If Contiguous is true, each segment contains one range of ids, and the ids are in ascending order. If Contiguous
	// is false, each user has a random segment, and the ids are in random order, as in an export of a data warehouse.
	Contiguous bool
	Seed       uint64
}

// A share is the name of a segment with the percentage of synthetic users who are in this segment.
type share struct {
	Segment string
	Percent float64
}

// The method Check returns an error if a field of the Users is invalid.
func (u *Users) Check() error {
	if uint64(u.First)+uint64(u.Count) > 1<<32 {
		return fmt.Errorf(
			"%d users with ids from %d on do not fit: the highest possible id is 4294967295",
			u.Count, u.First)
	}
	sum := 0.0
	for _, s := range u.Shares {
		if err := segments.CheckName(s.Segment); err != nil {
			return err
		}
		if sum += s.Percent; sum > 100.0001 {
			return errors.New("the sum of the percentages of all segments must be at most 100 %")
		}
	}
	return nil
}

// The method All yields the synthetic users who are in a segment: the index of the segment in Shares, and the user's
// id. When ctx ends, All ends early.
func (u *Users) All(ctx context.Context) iter.Seq2[int, uint32] {
	until, n := u.bounds(), uint64(u.Count)
	step := coprime(n)
	return func(yield func(int, uint32) bool) {
		for i := range n {
			at := i
			if !u.Contiguous {
				at = mulMod(i, step, n)
			}
			share := u.shareOf(at, until)
			if share < len(until) && !yield(share, u.First+uint32(at)) || i&(1<<20-1) == 0 && ctx.Err() != nil {
				return
			}
		}
	}
}

// The method "bounds" returns a sum for each segment in Shares: the percentages of all segments up to this segment. The
// unit of a sum is 1/2^32 of all users.
func (u *Users) bounds() []uint64 {
	var until []uint64
	sum := 0.0
	for _, s := range u.Shares {
		sum += s.Percent
		until = append(until, uint64(sum/100*(1<<32)))
	}
	return until
}

// shareOf returns the index in Shares of a synthetic user's segment. The argument "at" is the user's position in the id
// range. If the user is in no segment, shareOf returns len(Shares).
func (u *Users) shareOf(at uint64, until []uint64) int {
	draw := at << 32 / uint64(u.Count)
	if !u.Contiguous {
		draw = scatter(at^u.Seed<<32) >> 32
	}
	for i, end := range until {
		if draw < end {
			return i
		}
	}
	return len(until)
}

// mulMod returns i * step mod n.
func mulMod(i, step, n uint64) uint64 {
	high, low := bits.Mul64(i, step)
	_, rest := bits.Div64(high, low, n)
	return rest
}

// The function coprime returns a number near 0.618 n that has no common divisor with n. The multiples of the returned
// number, modulo n, take every value below n.
func coprime(n uint64) uint64 {
	step := uint64(float64(n)*0.6180339887) | 1
	for gcd(step, n) != 1 {
		step += 2
	}
	return step
}

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
