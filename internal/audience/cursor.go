package audience

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/cespare/xxhash/v2"
)

// Cursor marks the end of a page of users in an audience.
type Cursor struct {
	Generation string // name of the generation that contains the users
	after      uint32 // number of the last user of the page
	query      uint64 // one hash over the expression, sample and part of the query
}

// ErrOtherQuery reports that a page's cursor belongs to a query with another expression, sample, part or generation
// (published version).
var ErrOtherQuery = errors.New(
	"the cursor belongs to another query: every call must repeat the query's expression, sample, part and generation")

// errNoCursor reports that a text is not a valid cursor. The variable errNoCursor gives no details, because the content
// of a cursor has no meaning for callers.
var errNoCursor = errors.New("the cursor was not returned by an earlier call")

// A Cursor consists of a format version, the hash of the query, the last user's number, the name of the generation
// (published version), and a checksum. The text of a cursor is base64 for URLs.
const (
	cursorVersion = 1
	cursorHead    = 1 + 8 + 4
	cursorSum     = 4
	maxCursor     = 256 // characters
)

// ParseCursor decodes the text of a cursor.
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
	if c.String() != text { // this check also verifies the checksum, and rejects any other spelling of the cursor
		return nil, errNoCursor
	}
	return c, nil
}

// String returns the text of the cursor, which callers send to request the next page.
func (c *Cursor) String() string {
	raw := make([]byte, 0, cursorHead+len(c.Generation)+cursorSum)
	raw = append(raw, cursorVersion)
	raw = binary.BigEndian.AppendUint64(raw, c.query)
	raw = binary.BigEndian.AppendUint32(raw, c.after)
	raw = append(raw, c.Generation...)
	raw = binary.BigEndian.AppendUint32(raw, uint32(xxhash.Sum64(raw)))
	return base64.RawURLEncoding.EncodeToString(raw)
}

// queryHash returns one hash over the generation (published version), expression, sample and part of a query, for the
// check of a cursor. This hash does not depend on the start and the length of the page.
func (a *Audience) queryHash(q *Query) uint64 {
	text := fmt.Sprintf("%q %q", a.Generation(), a.expression)
	if q.Sample != nil {
		text += fmt.Sprintf(" sample %x %q", math.Float64bits(q.Sample.To()), q.Sample.Salt())
		if from := q.Sample.From(); from > 0 { // cursors of older versions lack a sample's start of 0
			text += fmt.Sprintf(" from %x", math.Float64bits(from))
		}
	}
	if q.Part.Of > 0 {
		text += fmt.Sprintf(" part %d %d", q.Part.Index, q.Part.Of)
	}
	return xxhash.Sum64String(text)
}
