package journal

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"maps"
	"slices"

	"capper/internal/audit"
	"capper/internal/capping"
)

// finish reads a file and is what is to be kept of it, with its end, and its index entry.
// One whose writer died is closed behind its last whole frame. closed is nil where it
// holds nothing. The error is that it is damaged in the middle: what is before is kept.
func finish(file []byte) (closed []byte, entry *audit.Entry, err error) {
	s := newScan()
	r, err := audit.NewReader(bytes.NewReader(file))
	if err == nil {
		err = s.read(r)
	}
	if errors.As(err, new(*audit.TornError)) || errors.Is(err, io.EOF) {
		err = nil
	}
	if r == nil || r.So().Last < r.Header().First { // not even one record
		return nil, nil, err
	}
	closed = file[:r.Offset()]
	if !r.Ended() {
		s.recovered = true
		end := r.So()
		end.Recovered = true
		closed = audit.AppendEnd(slices.Clone(closed), end)
	}
	return closed, s.entry(r, closed), err
}

// scan gathers what an entry tells.
type scan struct {
	lost                           uint64
	first, last                    capping.Instant
	recovered                      bool
	generations, configs, messages map[string]bool
	kinds                          map[string]int
}

func newScan() *scan {
	return &scan{first: capping.Never, generations: map[string]bool{}, configs: map[string]bool{}, messages: map[string]bool{}, kinds: map[string]int{}}
}

// read reads all frames. The error is how that ended.
func (s *scan) read(r *audit.Reader) error {
	for {
		frame, err := r.Next()
		if err != nil {
			return err
		}
		switch {
		case frame.Record != nil:
			s.record(frame.Record)
		case frame.Gap != nil:
			s.lost += frame.Gap.Lost
			s.span(frame.Gap.From, frame.Gap.To)
		case frame.End != nil:
			s.recovered = frame.End.Recovered
		}
	}
}

func (s *scan) span(from, to capping.Instant) { s.first, s.last = min(s.first, from), max(s.last, to) }

func (s *scan) record(r *audit.Record) {
	s.span(r.At, r.At+capping.Instant(r.Took.Milliseconds()))
	s.kinds[r.Kind.String()]++
	if r.Generation != "" {
		s.generations[r.Generation] = true
	}
	if r.Config != "" {
		s.configs[r.Config] = true
	}
	if token := r.Message.Token(); r.Message.ID != "" && len(s.messages) <= audit.MaxMessages {
		s.messages[hex.EncodeToString(token[:])] = true
	}
}

func (s *scan) entry(r *audit.Reader, closed []byte) *audit.Entry {
	sum := sha256.Sum256(closed)
	h, so := r.Header(), r.So()
	e := &audit.Entry{
		Format: audit.Format, Instance: h.Instance, Number: h.Number, SHA256: hex.EncodeToString(sum[:]), Bytes: int64(len(closed)),
		Records: so.Records, Lost: s.lost, FirstSequence: h.First, LastSequence: so.Last,
		First: s.first.Time(), Last: s.last.Time(), Recovered: s.recovered,
		Generations: sorted(s.generations), Configs: sorted(s.configs), Kinds: s.kinds,
	}
	e.Key = audit.RecordsKey(audit.Day(e.First), e.SHA256)
	if e.ManyMessages = len(s.messages) > audit.MaxMessages; !e.ManyMessages {
		e.Messages = sorted(s.messages)
	}
	return e
}

func sorted(names map[string]bool) []string {
	return append([]string{}, slices.Sorted(maps.Keys(names))...)
}
