package audit

import "slices"

// The type Sequences finds lost audit records by the sequence numbers of the records that were read. Records may come
// in any order, because readers read an audit in the order of time, and concurrent calls may end in another order. The
// zero value of Sequences is ready for the first record.
type Sequences struct{ instances map[string]*sequences }

// The type "sequences" holds the sequence numbers that occurred among the records of one instance, and the missing
// numbers.
type sequences struct {
	first, last uint64
	missing     []span // between first and last, in order
}

// A span is a range of sequence numbers that includes both ends.
type span struct{ from, to uint64 }

// Add notes that the archive has a record with the given sequence number.
func (s *Sequences) Add(instance string, sequence uint64) {
	if s.instances == nil {
		s.instances = map[string]*sequences{}
	}
	if q := s.instances[instance]; q != nil {
		q.add(sequence)
	} else {
		s.instances[instance] = &sequences{first: sequence, last: sequence}
	}
}

// The method Gaps returns the number of gaps in the sequence numbers of all instances, between the first and the last
// record of each instance.
func (s *Sequences) Gaps() (n int64) {
	for _, q := range s.instances {
		n += int64(len(q.missing))
	}
	return n
}

func (q *sequences) add(n uint64) {
	switch {
	case n > q.last:
		if n > q.last+1 {
			q.missing = append(q.missing, span{q.last + 1, n - 1})
		}
		q.last = n
	case n < q.first:
		if n+1 < q.first {
			q.missing = slices.Insert(q.missing, 0, span{n + 1, q.first - 1})
		}
		q.first = n
	default:
		q.found(n)
	}
}

// The method "found" notes the record of a sequence number that seemed to be missing.
func (q *sequences) found(n uint64) {
	i, among := slices.BinarySearchFunc(q.missing, n, func(m span, n uint64) int {
		switch {
		case m.to < n:
			return -1
		case m.from > n:
			return 1
		}
		return 0
	})
	if !among {
		return
	}
	var left []span
	if m := q.missing[i]; m.from < n {
		left = append(left, span{m.from, n - 1})
	}
	if m := q.missing[i]; m.to > n {
		left = append(left, span{n + 1, m.to})
	}
	q.missing = slices.Replace(q.missing, i, i+1, left...)
}
