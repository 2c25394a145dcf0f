package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"

	"capper/internal/capping"
)

// A Summary computes the index entry of an audit file from the file's frames (entries), one after another.
type Summary struct {
	header   Header
	records  uint64
	lost     uint64
	first    capping.Instant // earliest At
	last     capping.Instant // latest At plus Took
	begun    capping.Instant // At of the first record
	ended    End
	messages map[capping.Token]bool
	many     bool

	generations, configs map[string]bool
	kinds                map[string]int
}

// NewSummary returns the summary of an audit file that has only a header so far.
func NewSummary(h Header) *Summary {
	return &Summary{
		header: h, first: capping.Never, begun: h.Begun, messages: map[capping.Token]bool{},
		generations: map[string]bool{}, configs: map[string]bool{}, kinds: map[string]int{},
	}
}

// Add adds the next frame (entry) of the audit file to the summary.
func (s *Summary) Add(f Frame) {
	switch {
	case f.Gap != nil:
		s.lost += f.Gap.Lost
	case f.End != nil:
		s.ended = *f.End
	case f.Record != nil:
		s.record(f.Record)
	}
}

func (s *Summary) record(r *Record) {
	if s.records == 0 {
		s.begun = r.At
	}
	s.records++
	s.first, s.last = min(s.first, r.At), max(s.last, r.At+capping.Instant(r.Took.Milliseconds()))
	s.generations[r.Generation], s.configs[r.Config] = true, true
	s.kinds[r.Kind.String()]++
	if s.many {
		return
	}
	s.messages[r.Message.Token()] = true
	if len(s.messages) > MaxMessages {
		s.many, s.messages = true, nil
	}
}

// Entry returns the index entry of the audit file, whose bytes are the argument "raw". The object key in the index
// entry contains the day of the file's first record. If the audit file has no records, First and Last of the entry are
// the time at which the file was begun.
func (s *Summary) Entry(raw []byte) Entry {
	sum := sha256.Sum256(raw)
	first, last := s.first, s.Last()
	if s.records == 0 {
		first = last
	}
	e := Entry{
		Format: s.header.IDs.format(), Instance: s.header.Instance, Number: s.header.Number,
		SHA256: hex.EncodeToString(sum[:]), Bytes: int64(len(raw)),
		Records: s.records, Lost: s.lost, FirstSequence: s.header.First, LastSequence: s.header.First + s.records +
			s.lost - 1,
		First: first.Time(), Last: last.Time(), Recovered: s.ended.Recovered,
		Generations: slices.Sorted(maps.Keys(s.generations)), Configs: slices.Sorted(maps.Keys(s.configs)),
		Kinds: s.kinds, ManyMessages: s.many,
	}
	e.Key = RecordsKey(s.Day(), e.SHA256)
	for token := range s.messages {
		e.Messages = append(e.Messages, hex.EncodeToString(token[:]))
	}
	slices.Sort(e.Messages)
	return e
}

// IDs returns the kind and key of the user ids in the audit file.
func (s *Summary) IDs() IDs { return s.header.IDs }

// The method Last returns the end of the latest call in the audit file. If the audit file has no records, Last returns
// the time at which the file was begun.
func (s *Summary) Last() capping.Instant {
	if s.records == 0 {
		return s.header.Begun
	}
	return s.last
}

// Day returns the day in the object keys of the audit file: the day of the file's first record.
func (s *Summary) Day() string { return Day(s.begun.Time()) }

// IndexKey returns the object key of the index entry of the audit file.
func (s *Summary) IndexKey() string { return IndexKey(s.Day(), s.header.Instance, s.header.Number) }
