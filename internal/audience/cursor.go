package audience

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/cespare/xxhash/v2"
)

// Cursor is where a page ended.
type Cursor struct {
	Generation string // whose users the pages are of
	after      uint32 // the last user of the page
	query      uint64 // hash of what else was asked
}

// ErrOtherQuery: a cursor is of another expression, sample, part or generation.
var ErrOtherQuery = errors.New("the cursor belongs to another query: expression, sample, part and generation must " +
	"be the same in every call")

// errNoCursor says no more, as what it is about has no parts for who sent it.
var errNoCursor = errors.New("the cursor was not returned by an earlier call")

// The bytes of a cursor: version, query, last user, generation, and a hash of all that
// against damage, in base64 for URLs.
const (
	cursorVersion = 1
	cursorHead    = 1 + 8 + 4
	cursorSum     = 4
	maxCursor     = 256 // characters
)

// ParseCursor reads a cursor.
func ParseCursor(text string) (*Cursor, error) {
	if len(text) > maxCursor {
		return nil, errNoCursor
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(raw) < cursorHead+1+cursorSum || raw[0] != cursorVersion {
		return nil, errNoCursor
	}
	c := &Cursor{
		query: binary.BigEndian.Uint64(raw[1:]), after: binary.BigEndian.Uint32(raw[9:]),
		Generation: string(raw[cursorHead : len(raw)-cursorSum]),
	}
	if c.String() != text { // so the hash holds, and there is no other way to write it
		return nil, errNoCursor
	}
	return c, nil
}

// String is the cursor as callers hold it.
func (c *Cursor) String() string {
	raw := make([]byte, 0, cursorHead+len(c.Generation)+cursorSum)
	raw = append(raw, cursorVersion)
	raw = binary.BigEndian.AppendUint64(raw, c.query)
	raw = binary.BigEndian.AppendUint32(raw, c.after)
	raw = append(raw, c.Generation...)
	raw = binary.BigEndian.AppendUint32(raw, uint32(xxhash.Sum64(raw)))
	return base64.RawURLEncoding.EncodeToString(raw)
}

// queryHash tells one query from another: everything but where a page begins and how long it is.
func (a *Audience) queryHash(q *Query) uint64 {
	text := fmt.Sprintf("%q %q", a.Generation(), a.expression)
	if q.Sample != nil {
		text += fmt.Sprintf(" sample %x %q", math.Float64bits(q.Sample.To()), q.Sample.Salt())
		if from := q.Sample.From(); from > 0 { // cursors of shares that begin at 0 are older than cells
			text += fmt.Sprintf(" from %x", math.Float64bits(from))
		}
	}
	if q.Part.Of > 0 {
		text += fmt.Sprintf(" part %d %d", q.Part.Index, q.Part.Of)
	}
	return xxhash.Sum64String(text)
}
