package format

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
)

// parse parses a text in two blocks, cut where the syntax allows. Blank lines at the end are dropped.
func parse(text string, s Syntax) *Block {
	into := NewBlock(nil, 20)
	rest := []byte(strings.TrimRight(text, "\r\n"))
	line := int64(1)
	if half := s.Whole(rest[:len(rest)/2]); half > 0 {
		s.Parse(into, rest[:half], line)
		line += int64(bytes.Count(rest[:half], []byte{'\n'}))
		rest = rest[half:]
	}
	s.Parse(into, rest, line)
	return into
}

// PlainID is a second implementation of the rule for ids.
func PlainID(field string) (uint32, bool) {
	field = strings.Trim(field, " \t\r")
	if strings.Trim(field, "0123456789") != "" {
		return 0, false
	}
	v, err := strconv.ParseUint(field, 10, 32)
	return uint32(v), err == nil
}

// oneName accepts any name as the only segment of a table.
type oneName struct{}

func (oneName) Code([]byte) (uint16, error) { return 1, nil }

// benchmark measures parsing one block of random ids on one core, for rows of this form, with or
// without names.
func benchmark(b *testing.B, row string, table bool, parse func(into *Block, text []byte, line int64)) {
	random := rand.New(rand.NewPCG(1, 1))
	var text bytes.Buffer
	count := 0
	for ; text.Len() < 1<<20-100; count++ {
		fmt.Fprintf(&text, row, random.Uint32N(270_000_000))
	}
	into := NewBlock(nil, 0)
	if table {
		into = NewBlock(oneName{}, 0)
	}
	b.SetBytes(int64(text.Len()))
	b.ReportAllocs()
	for b.Loop() {
		into.Reset()
		parse(into, text.Bytes(), 1)
	}
	if len(into.IDs) != count {
		b.Fatalf("%d rows, want %d", len(into.IDs), count)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(count), "ns/row")
}
