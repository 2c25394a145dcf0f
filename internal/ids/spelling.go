package ids

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"unicode/utf8"
)

// MaxText is the maximum length of a text id in bytes.
const MaxText = 256

// hexDigits maps a hexadecimal digit (byte) to its value, and all other bytes to 0xff.
var hexDigits = func() (values [256]byte) {
	for i := range values {
		values[i] = 0xff
	}
	for i := range byte(10) {
		values['0'+i] = i
	}
	for i := range byte(6) {
		values['a'+i], values['A'+i] = 10+i, 10+i
	}
	return values
}()

const urnPrefix = "urn:uuid:"

// parseUUID parses a UUID in any valid spelling, writes its 16 bytes to id, and reports whether the text is a UUID.
func parseUUID(id *[16]byte, text []byte) bool {
	if len(text) != 36 && len(text) != 32 {
		text, _ = unwrapped(text)
	}
	switch {
	case len(text) == 32:
		t := (*[32]byte)(text)
		return parseHex(id, (*[8]byte)(t[0:]), (*[4]byte)(t[8:]), (*[4]byte)(t[12:]), (*[4]byte)(t[16:]),
			(*[4]byte)(t[20:]), (*[8]byte)(t[24:]))
	case len(text) == 36 && text[8] == '-' && text[13] == '-' && text[18] == '-' && text[23] == '-':
		t := (*[36]byte)(text)
		return parseHex(id, (*[8]byte)(t[0:]), (*[4]byte)(t[9:]), (*[4]byte)(t[14:]), (*[4]byte)(t[19:]),
			(*[4]byte)(t[24:]), (*[8]byte)(t[28:]))
	}
	return false
}

// The variable "highs" maps a hexadecimal digit (byte) to its value in the upper four bits of a byte. The variable lows
// maps the digit to its value in the lower four bits. The variables highs and lows map all bytes that are not digits to
// noDigit.
var highs, lows = func() (highs, lows [256]uint16) {
	for i, digit := range hexDigits {
		highs[i], lows[i] = uint16(digit)<<4, uint16(digit)
		if digit > 0xf {
			highs[i], lows[i] = noDigit, noDigit
		}
	}
	return highs, lows
}()

const noDigit = 0xff00

// parseHex decodes 32 hexadecimal digits, passed in the groups of a UUID, and reports whether all characters are
// digits. The function parseHex has no loop, because a loop over the bytes takes twice the time.
func parseHex(id *[16]byte, a *[8]byte, b, c, d, e *[4]byte, f *[8]byte) bool {
	w, x, y, z := highs[a[0]]|lows[a[1]], highs[a[2]]|lows[a[3]], highs[a[4]]|lows[a[5]], highs[a[6]]|lows[a[7]]
	all := w | x | y | z
	id[0], id[1], id[2], id[3] = byte(w), byte(x), byte(y), byte(z)
	w, x, y, z = highs[b[0]]|lows[b[1]], highs[b[2]]|lows[b[3]], highs[c[0]]|lows[c[1]], highs[c[2]]|lows[c[3]]
	all |= w | x | y | z
	id[4], id[5], id[6], id[7] = byte(w), byte(x), byte(y), byte(z)
	w, x, y, z = highs[d[0]]|lows[d[1]], highs[d[2]]|lows[d[3]], highs[e[0]]|lows[e[1]], highs[e[2]]|lows[e[3]]
	all |= w | x | y | z
	id[8], id[9], id[10], id[11] = byte(w), byte(x), byte(y), byte(z)
	w, x, y, z = highs[f[0]]|lows[f[1]], highs[f[2]]|lows[f[3]], highs[f[4]]|lows[f[5]], highs[f[6]]|lows[f[7]]
	all |= w | x | y | z
	id[12], id[13], id[14], id[15] = byte(w), byte(x), byte(y), byte(z)
	return all < noDigit
}

// The function "unwrapped" removes the prefix "urn:uuid:" from the text of a UUID, or the braces around the text. If
// the text has only one of the two braces, the second result is false.
func unwrapped(text []byte) (inner []byte, whole bool) {
	if n := len(urnPrefix); len(text) > n && bytes.EqualFold(text[:n], []byte(urnPrefix)) {
		return text[n:], true
	}
	opened, closed := bytes.HasPrefix(text, []byte("{")), bytes.HasSuffix(text, []byte("}"))
	if opened && closed {
		return text[1 : len(text)-1], true
	}
	return text, !opened && !closed
}

// uuidError returns an error with the reason for which a text is not a UUID, for example missing digits.
func uuidError(text []byte) error {
	inner, whole := unwrapped(text)
	if !whole {
		return fmt.Errorf("is not a UUID: %s has one brace without the other", shown(text))
	}
	digits := 0
	for i := 0; i < len(inner); {
		r, size := utf8.DecodeRune(inner[i:])
		if r != '-' && (size > 1 || hexDigits[inner[i]] > 0xf) {
			return fmt.Errorf("is not a UUID: %s has the character %s, and a UUID has hexadecimal digits and dashes",
				shown(text), shown(inner[i:i+size]))
		}
		if r != '-' {
			digits++
		}
		i += size
	}
	if digits != 32 {
		noun := "digits"
		if digits == 1 {
			noun = "digit"
		}
		return fmt.Errorf("is not a UUID: %s has %d hexadecimal %s, and a UUID has 32", shown(text), digits, noun)
	}
	return fmt.Errorf("is not a UUID: %s has dashes in wrong places, and a UUID has no dashes or four (8-4-4-4-12)",
		shown(text))
}

// hexPairs maps a byte to its two hexadecimal digits. The first digit is in the low byte of the result.
var hexPairs = func() (pairs [256]uint16) {
	const digits = "0123456789abcdef"
	for i := range pairs {
		pairs[i] = uint16(digits[i>>4]) | uint16(digits[i&0xf])<<8
	}
	return pairs
}()

// appendUUID appends the canonical text of a UUID.
func appendUUID(dst []byte, id *[16]byte) []byte {
	begin := len(dst)
	dst = slices.Grow(dst, 36)[:begin+36]
	text := (*[36]byte)(dst[begin:])
	text[8], text[13], text[18], text[23] = '-', '-', '-', '-'
	binary.LittleEndian.PutUint16(text[0:], hexPairs[id[0]])
	binary.LittleEndian.PutUint16(text[2:], hexPairs[id[1]])
	binary.LittleEndian.PutUint16(text[4:], hexPairs[id[2]])
	binary.LittleEndian.PutUint16(text[6:], hexPairs[id[3]])
	binary.LittleEndian.PutUint16(text[9:], hexPairs[id[4]])
	binary.LittleEndian.PutUint16(text[11:], hexPairs[id[5]])
	binary.LittleEndian.PutUint16(text[14:], hexPairs[id[6]])
	binary.LittleEndian.PutUint16(text[16:], hexPairs[id[7]])
	binary.LittleEndian.PutUint16(text[19:], hexPairs[id[8]])
	binary.LittleEndian.PutUint16(text[21:], hexPairs[id[9]])
	binary.LittleEndian.PutUint16(text[24:], hexPairs[id[10]])
	binary.LittleEndian.PutUint16(text[26:], hexPairs[id[11]])
	binary.LittleEndian.PutUint16(text[28:], hexPairs[id[12]])
	binary.LittleEndian.PutUint16(text[30:], hexPairs[id[13]])
	binary.LittleEndian.PutUint16(text[32:], hexPairs[id[14]])
	binary.LittleEndian.PutUint16(text[34:], hexPairs[id[15]])
	return dst
}

// parseNumber parses a decimal number: a dense id (32-bit integer) or a uint64 id.
func (s *Scheme) parseNumber(text []byte) (id uint64, err error) {
	if len(text) == 0 || len(text) > 20 || text[0] == '0' && len(text) > 1 {
		return 0, s.numberError(text)
	}
	rest := text
	for len(rest) >= 8 {
		eight, ok := eightDigits(rest)
		if !ok {
			return 0, s.numberError(text)
		}
		id, rest = id*100_000_000+eight, rest[8:]
	}
	for _, c := range rest {
		digit := uint64(c - '0')
		high, low := bits.Mul64(id, 10)
		sum, carry := bits.Add64(low, digit, 0)
		if digit > 9 || high|carry != 0 {
			return 0, s.numberError(text)
		}
		id = sum
	}
	if s.kind == Dense && id > math.MaxUint32 {
		return 0, s.numberError(text)
	}
	return id, nil
}

// eightDigits parses the first eight bytes of a text as a decimal number. If one of the eight bytes is not a digit, the
// result "ok" is false. The algorithm is by Daniel Lemire,
// https://lemire.me/blog/2022/01/21/swar-explained-parsing-eight-digits/. The function eightDigits combines
// neighbouring digits to numbers of two digits, then of four digits, then of eight digits.
func eightDigits(text []byte) (number uint64, ok bool) {
	const all, lower, upper = 0x0101010101010101, 0x000000ff000000ff, 0xf0f0f0f0f0f0f0f0
	x := binary.LittleEndian.Uint64(text)
	if x&upper != '0'*all || (x+6*all)&upper != '0'*all {
		return 0, false
	}
	x -= '0' * all
	x = x*10 + x>>8
	x = (x&lower*(100+1_000_000<<32) + x>>16&lower*(1+10_000<<32)) >> 32
	return x, true
}

// numberError returns an error with the reason for which a text is not a dense id (32-bit integer) or a uint64 id.
func (s *Scheme) numberError(text []byte) error {
	largest := uint64(math.MaxUint64)
	if s.kind == Dense {
		largest = math.MaxUint32
	}
	is := fmt.Sprintf("is not a %s id: %s", s.kind, shown(text))
	if len(text) == 0 {
		return fmt.Errorf("%s is empty, and a %s id is a whole number from 0 to %d", is, s.kind, largest)
	}
	for i := 0; i < len(text); {
		_, size := utf8.DecodeRune(text[i:])
		if text[i] < '0' || text[i] > '9' {
			return fmt.Errorf("%s has the character %s, and a %s id has only the digits 0 to 9", is,
				shown(text[i:i+size]), s.kind)
		}
		i += size
	}
	if text[0] == '0' {
		return fmt.Errorf("%s begins with 0, and a %s id has no leading zeros", is, s.kind)
	}
	return fmt.Errorf("%s is above %d", is, largest)
}

// checkText returns an error if a text is not valid as an id of the kind "text".
func checkText(text []byte) error {
	if len(text) == 0 {
		return fmt.Errorf("is not a text id: \"\" is empty, and a text id has 1 to %d bytes", MaxText)
	}
	if len(text) > MaxText {
		return fmt.Errorf("is not a text id: %s has %d bytes, and a text id has at most %d", shown(text), len(text),
			MaxText)
	}
	for i := 0; i < len(text); {
		if c := text[i]; c < utf8.RuneSelf {
			if c < ' ' || c == 0x7f {
				return fmt.Errorf("is not a text id: %s has the control character U+%04X at byte %d", shown(text),
					c, i+1)
			}
			i++
			continue
		}
		r, size := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && size == 1 {
			return fmt.Errorf("is not a text id: %s is not valid UTF-8 at byte %d", shown(text), i+1)
		}
		if r == utf8.RuneError {
			return fmt.Errorf("is not a text id: %s has U+FFFD (sign of invalid UTF-8) at byte %d",
				shown(text), i+1)
		}
		i += size
	}
	return nil
}

// maxShown is the maximum number of bytes of a text that an error contains.
const maxShown = 80

// The function "shown" returns a text in quotes for an error message. The function cuts the text after maxShown bytes,
// and escapes invisible characters.
func shown[T string | []byte](text T) string {
	if len(text) <= maxShown {
		return strconv.Quote(string(text))
	}
	cut := maxShown
	for cut > maxShown-utf8.UTFMax && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return strconv.Quote(string(text[:cut]) + "…")
}
