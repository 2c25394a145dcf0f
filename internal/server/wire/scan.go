package wire

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"capper/client/api"
	"capper/internal/capping"
)

// A scanner parses one JSON document (RFC 8259) strictly, in one pass. Each error of a scanner names a field of the
// request. If the JSON is invalid, the error of a scanner names the byte position.
type scanner struct {
	data []byte
	pos  int
}

func (s *scanner) skipSpace() {
	for s.pos < len(s.data) {
		switch s.data[s.pos] {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return
		}
	}
}

// The method peek returns the next byte that is not white space, or 0 at the end of the document.
func (s *scanner) peek() byte {
	s.skipSpace()
	if s.pos < len(s.data) {
		return s.data[s.pos]
	}
	return 0
}

func (s *scanner) accept(c byte) bool {
	if s.peek() != c {
		return false
	}
	s.pos++
	return true
}

// The method syntax returns the failure of a request that has invalid JSON at the current byte.
func (s *scanner) syntax(expected string) *Failure {
	if s.pos >= len(s.data) {
		return NewFailure(api.CodeInvalidRequest, "the body is not valid JSON: it ends at byte %d, where %s is "+
			"expected",
			s.pos, expected)
	}
	return NewFailure(api.CodeInvalidRequest, "the body is not valid JSON: byte %d is %q, where %s is expected",
		s.pos, string(rune(s.data[s.pos])), expected)
}

// The method document parses a JSON object and calls the argument "field", a function, for each member of the object.
// The function "field" must consume the value of the member. If more text follows the JSON object, document() returns
// an error.
func (s *scanner) document(field func(name string) error) error {
	if s.peek(); s.pos == len(s.data) {
		return NewFailure(api.CodeInvalidRequest, "the body is empty: a JSON object is expected")
	}
	if !s.accept('{') {
		return NewFailure(api.CodeInvalidRequest, "the body is not a JSON object: it begins with %q",
			string(rune(s.data[s.pos])))
	}
	if !s.accept('}') {
		if err := s.members(field); err != nil {
			return err
		}
	}
	if s.peek(); s.pos < len(s.data) {
		return s.syntax("the end of the body (nothing may follow the object)")
	}
	return nil
}

func (s *scanner) members(field func(name string) error) error {
	for {
		if s.peek() != '"' {
			return s.syntax("a field name")
		}
		name, err := s.text("a field name")
		if err != nil {
			return err
		}
		if !s.accept(':') {
			return s.syntax("':'")
		}
		if err := field(string(name)); err != nil {
			return err
		}
		if s.accept('}') {
			return nil
		}
		if !s.accept(',') {
			return s.syntax("',' or '}'")
		}
	}
}

// The method boolean parses the literals true and false.
func (s *scanner) boolean(field string) (bool, error) {
	s.skipSpace()
	rest := s.data[s.pos:]
	switch {
	case bytes.HasPrefix(rest, []byte("true")):
		s.pos += len("true")
		return true, nil
	case bytes.HasPrefix(rest, []byte("false")):
		s.pos += len("false")
		return false, nil
	}
	return false, Invalid(field, "%s is neither true nor false", s.value())
}

// The method str parses a JSON string. The returned bytes may share memory with the document.
func (s *scanner) str(field string) ([]byte, error) {
	if s.peek() != '"' {
		return nil, Invalid(field, "%s is not a string", s.value())
	}
	text, err := s.text(field)
	if err != nil {
		return nil, err
	}
	if !utf8.Valid(text) {
		return nil, Invalid(field, "must be valid UTF-8")
	}
	return text, nil
}

// The method text parses the JSON string that begins at the current byte.
func (s *scanner) text(field string) ([]byte, error) {
	start := s.pos + 1
	end := bytes.IndexByte(s.data[start:], '"')
	if end < 0 {
		s.pos = len(s.data)
		return nil, s.syntax(`the '"' that ends a string`)
	}
	raw := s.data[start : start+end]
	if bytes.IndexByte(raw, '\\') >= 0 {
		s.pos = start
		return s.escaped(field)
	}
	for i, c := range raw {
		if c < ' ' {
			s.pos = start + i
			return nil, s.syntax("a character (control characters must be escaped)")
		}
	}
	s.pos = start + end + 1
	return raw, nil
}

// The method "escaped" parses the remaining bytes of a JSON string that contains escapes.
func (s *scanner) escaped(field string) ([]byte, error) {
	var text []byte
	for s.pos < len(s.data) {
		c := s.data[s.pos]
		switch {
		case c == '"':
			s.pos++
			return text, nil
		case c < ' ':
			return nil, s.syntax("a character (control characters must be escaped)")
		case c != '\\':
			text = append(text, c)
			s.pos++
		default:
			r, ok := s.escape()
			if !ok {
				return nil, Invalid(field, "the escape at byte %d of the body is not valid", s.pos)
			}
			text = utf8.AppendRune(text, r)
		}
	}
	return nil, s.syntax(`the '"' that ends a string`)
}

var escapes = map[byte]rune{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// The method escape parses one escape sequence of a JSON string, or two sequences for a character outside the basic
// multilingual plane. The method escape rejects one half of a surrogate pair without the other half.
func (s *scanner) escape() (rune, bool) {
	rest := s.data[s.pos:]
	if len(rest) < 2 {
		return 0, false
	}
	if r, ok := escapes[rest[1]]; ok {
		s.pos += 2
		return r, true
	}
	r, ok := unit(rest)
	if !ok {
		return 0, false
	}
	if !utf16.IsSurrogate(r) {
		s.pos += 6
		return r, true
	}
	low, ok := unit(rest[6:])
	if r = utf16.DecodeRune(r, low); !ok || r == utf8.RuneError {
		return 0, false
	}
	s.pos += 12
	return r, true
}

// The function "unit" returns the UTF-16 code unit of an escape sequence \u with four hexadecimal digits.
func unit(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	v := rune(0)
	for _, c := range b[2:6] {
		switch {
		case c >= '0' && c <= '9':
			v = v<<4 | rune(c-'0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			v = v<<4 | rune(c|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	return v, true
}

// The method value returns a description of the JSON value at the current byte, for an error message.
func (s *scanner) value() string {
	switch c := s.peek(); c {
	case 0:
		return "the end of the body"
	case ',', ':', ']', '}':
		return fmt.Sprintf("a missing value before '%c'", c)
	case '{':
		return "an object"
	case '[':
		return "an array"
	}
	rest := s.data[s.pos:]
	if rest[0] == '"' {
		if end := bytes.IndexByte(rest[1:], '"'); end >= 0 {
			rest = rest[:end+2]
		}
	} else if end := bytes.IndexAny(rest[1:], " \t\r\n,]}"); end >= 0 {
		rest = rest[:end+1]
	}
	return Clip(rest)
}

// ids() parses a JSON array of dense ids (32-bit numbers), and appends at most "limit" ids to dst. If the array has
// more ids, the error text ends with the argument "remedy", which tells the caller what to do instead. If the array
// contains a JSON string, ids() returns errQuoted.
func (s *scanner) ids(field string, dst []capping.UserID, limit int, remedy string) ([]capping.UserID, error) {
	if !s.accept('[') {
		return nil, Invalid(field, "%s is not an array of user ids", s.value())
	}
	if s.accept(']') {
		return dst, nil
	}
	for {
		s.skipSpace()
		id, end := number(s.data, s.pos)
		if end < 0 {
			return nil, s.notID(field, len(dst))
		}
		if len(dst) == limit {
			return nil, FieldFailure(api.CodeTooLarge, field,
				"has more than %d ids: %s", limit, remedy)
		}
		dst = append(dst, id)
		if s.pos = end; s.pos < len(s.data) && s.data[s.pos] == ',' {
			s.pos++
			continue
		}
		if s.accept(']') {
			return dst, nil
		}
		if !s.accept(',') {
			return nil, s.syntax("',' or ']'")
		}
	}
}

// UserID parses a dense user id (32-bit number): decimal digits without leading zeros.
func UserID(text string) (capping.UserID, bool) {
	id, end := number([]byte(text), 0)
	return id, end == len(text) && text != ""
}

// The function number parses the dense user id (32-bit number) at the position pos. The function number returns the end
// position of the id, or -1 if the id is not valid. A valid dense id consists of digits without a leading zero, and is
// at most 4294967295.
func number(data []byte, pos int) (id capping.UserID, end int) {
	v, i := uint64(0), pos
	for ; i < len(data); i++ {
		digit := data[i] - '0'
		if digit > 9 {
			break
		}
		if v = v*10 + uint64(digit); v > math.MaxUint32 {
			return 0, -1
		}
	}
	if i == pos || data[pos] == '0' && i > pos+1 {
		return 0, -1
	}
	if i < len(data) && (data[i] == '.' || data[i]|0x20 == 'e') {
		return 0, -1
	}
	return capping.UserID(v), i
}

// errQuoted reports that an array of dense ids contains a JSON string, which needs another decoder.
var errQuoted = errors.New("an id is a string")

func (s *scanner) notID(field string, i int) error {
	c := s.peek()
	if s.pos == len(s.data) || c == ']' || c == ',' {
		return s.syntax("a user id")
	}
	if c == '"' {
		return errQuoted
	}
	return Invalid(field+"["+strconv.Itoa(i)+"]", "%s is not a user id (0 to 4294967295)", s.value())
}
