package client

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"
	"unicode/utf8"

	"capper/client/api"
)

// A response to a filter call lists up to 65,536 users. Package encoding/json takes as long to decode the lists of
// users as Redis takes to decide about the users. The file decode.go therefore contains a faster decoder for lists of
// users. The faster decoder accepts only the form of JSON that the service writes. Package encoding/json decodes all
// other members and all other forms of lists, and reports the faults of invalid responses.

// The function "decode" decodes a response body. If the type of the decoded value has a decoder of its own, decode()
// skips the syntax check of encoding/json.
func decode(answer []byte, out any) error {
	if own, ok := out.(json.Unmarshaler); ok {
		return own.UnmarshalJSON(answer)
	}
	return json.Unmarshal(answer, out)
}

// filteredIDs is an api.FilterIDs with a faster decoder.
type filteredIDs struct{ api.FilterIDs }

// UnmarshalJSON decodes a response. The text may be invalid JSON.
func (f *filteredIDs) UnmarshalJSON(text []byte) error {
	var l lists[uint32, api.Denial]
	if rest, ok := l.read(text, (*cursor).id, (*cursor).denial); ok {
		f.Allowed, f.Replayed, f.Denied, f.Unavailable = l.allowed, l.replayed, l.denied, l.unavailable
		text = rest
	}
	return json.Unmarshal(text, &f.FilterIDs)
}

// filteredStrings is an api.FilterStrings with a faster decoder.
type filteredStrings struct{ api.FilterStrings }

// UnmarshalJSON decodes a response. The text may be invalid JSON.
func (f *filteredStrings) UnmarshalJSON(text []byte) error {
	var l lists[string, api.DenialOfID]
	if rest, ok := l.read(text, (*cursor).text, (*cursor).denialOfID); ok {
		f.Allowed, f.Replayed, f.Denied, f.Unavailable = l.allowed, l.replayed, l.denied, l.unavailable
		text = rest
	}
	return json.Unmarshal(text, &f.FilterStrings)
}

// The type "lists" holds the lists of users in a response to a filter call.
type lists[ID, Denial any] struct {
	allowed, replayed, unavailable []ID
	denied                         []Denial
}

// The method "read" decodes the lists of users in a response, and returns a JSON object with all other members of the
// response. The result "ok" of the method "read" is false if the text does not have the form of JSON that the service
// writes.
func (l *lists[ID, Denial]) read(text []byte, id func(*cursor) ID, denial func(*cursor) Denial) (rest []byte, ok bool) {
	c := &cursor{rest: bytes.Trim(text, " \t\r\n")}
	of := map[string]*[]ID{"allowed": &l.allowed, "replayed": &l.replayed, "unavailable": &l.unavailable}
	for more := c.open('{', '}'); more; more = c.more('}') {
		began := c.rest
		key := string(c.key())
		switch list := of[key]; {
		case list != nil && *list == nil:
			*list = listOf(c, id)
		case key == "denied" && l.denied == nil:
			l.denied = listOf(c, denial)
		default:
			// encoding/json must decode a list whose key is repeated or has capital letters
			for _, name := range []string{"allowed", "replayed", "unavailable", "denied"} {
				c.bad = c.bad || strings.EqualFold(key, name)
			}
			c.skip()
			rest = append(append(rest, ','), began[:len(began)-len(c.rest)]...)
		}
	}
	if c.bad || len(c.rest) > 0 {
		return nil, false
	}
	return append(append([]byte{'{'}, bytes.TrimPrefix(rest, []byte{','})...), '}'), true
}

// The type cursor reads JSON text that has no spaces and no escapes. After a syntax fault, the field "bad" of the
// cursor is true, and the methods of the cursor return meaningless values.
type cursor struct {
	rest  []byte
	bad   bool
	words []string // strings that the method word has read before
}

// The method "take" skips the next byte of the JSON text. The byte must be the argument b.
func (c *cursor) take(b byte) {
	if len(c.rest) == 0 || c.rest[0] != b {
		c.rest, c.bad = nil, true
		return
	}
	c.rest = c.rest[1:]
}

// The method "open" reads the opening bracket of a JSON object or list, and reports whether a first member follows.
func (c *cursor) open(begin, end byte) bool {
	c.take(begin)
	if len(c.rest) > 0 && c.rest[0] == end {
		c.take(end)
		return false
	}
	return !c.bad
}

// The method "more" moves to the next member of a JSON object or list, and reports whether the member exists.
func (c *cursor) more(end byte) bool {
	if len(c.rest) > 0 && c.rest[0] == end {
		c.take(end)
		return false
	}
	c.take(',')
	return !c.bad
}

// listOf reads a list. For an empty JSON list, listOf returns an empty list instead of nil.
func listOf[T any](c *cursor, one func(*cursor) T) []T {
	list := []T{}
	for more := c.open('[', ']'); more; more = c.more(']') {
		left := len(c.rest)
		value := one(c)
		if len(list) == 0 { // the rest of the response has space for about this number of values
			list = make([]T, 0, left/(left-len(c.rest)+1)+1)
		}
		list = append(list, value)
	}
	return list
}

// The method "quoted" reads a string without escapes.
func (c *cursor) quoted() []byte {
	c.take('"')
	for i, b := range c.rest {
		switch {
		case b == '"':
			s := c.rest[:i]
			c.rest = c.rest[i+1:]
			return s
		case b == '\\' || b < ' ':
			c.rest, c.bad = nil, true
			return nil
		}
	}
	c.rest, c.bad = nil, true
	return nil
}

// The method "key" reads a key with its colon.
func (c *cursor) key() []byte {
	key := c.quoted()
	c.take(':')
	return key
}

// The method "text" reads a string of UTF-8.
func (c *cursor) text() string {
	s := c.quoted()
	c.bad = c.bad || !utf8.Valid(s)
	return string(s)
}

// The method "word" reads a JSON string that usually occurs in many denials, such as the name of a limit. For equal
// words, the method word() returns the same Go string, which saves memory.
func (c *cursor) word() string {
	s := c.quoted()
	for _, word := range c.words {
		if word == string(s) {
			return word
		}
	}
	c.bad = c.bad || !utf8.Valid(s)
	word := string(s)
	if len(c.words) < 16 {
		c.words = append(c.words, word)
	}
	return word
}

// The method "number" reads a whole number below 10^18.
func (c *cursor) number() (n uint64) {
	digits := 0
	for digits < len(c.rest) && c.rest[digits]-'0' <= 9 {
		n = n*10 + uint64(c.rest[digits]-'0')
		digits++
	}
	c.bad = c.bad || digits == 0 || digits > 18 || digits > 1 && c.rest[0] == '0'
	c.rest = c.rest[digits:]
	return n
}

// The method "id" reads a dense id.
func (c *cursor) id() uint32 {
	n := c.number()
	c.bad = c.bad || n>>32 > 0
	return uint32(n)
}

// The method "time" reads a time or null.
func (c *cursor) time() *time.Time {
	if rest, null := bytes.CutPrefix(c.rest, []byte("null")); null {
		c.rest = rest
		return nil
	}
	at := new(time.Time)
	c.bad = at.UnmarshalText(c.quoted()) != nil || c.bad
	return at
}

// The method "skip" reads any value.
func (c *cursor) skip() {
	depth := 0
	for i := 0; i < len(c.rest); i++ {
		switch c.rest[i] {
		case '{', '[':
			depth++
		case '"':
			for i++; i < len(c.rest) && c.rest[i] != '"'; i++ {
				if c.rest[i] == '\\' {
					i++
				}
			}
		case '}', ']':
			if depth--; depth < 0 {
				c.rest = c.rest[i:]
				return
			}
		case ',':
			if depth == 0 {
				c.rest = c.rest[i:]
				return
			}
		}
	}
	c.rest, c.bad = nil, true
}

func (c *cursor) denial() (d api.Denial) {
	for more := c.open('{', '}'); more; more = c.more('}') {
		if key := c.key(); string(key) == "user_id" {
			d.UserID = c.id()
		} else {
			c.reason(key, &d.Segment, &d.Limit, &d.Set, &d.Timezone, &d.Max, &d.RetryAt)
		}
	}
	return d
}

func (c *cursor) denialOfID() (d api.DenialOfID) {
	for more := c.open('{', '}'); more; more = c.more('}') {
		if key := c.key(); string(key) == "user_id" {
			d.UserID = c.text()
		} else {
			c.reason(key, &d.Segment, &d.Limit, &d.Set, &d.Timezone, &d.Max, &d.RetryAt)
		}
	}
	return d
}

// The method "reason" reads one member of a denial's JSON object, except the user id.
func (c *cursor) reason(key []byte, segment, limit, set, timezone *string, most *int, retryAt **time.Time) {
	switch string(key) {
	case "segment":
		*segment = c.word()
	case "limit":
		*limit = c.word()
	case "set":
		*set = c.word()
	case "timezone":
		*timezone = c.word()
	case "max":
		*most = int(c.number())
	case "retry_at":
		*retryAt = c.time()
	default:
		c.bad = true
	}
}
