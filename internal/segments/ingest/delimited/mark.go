package delimited

import (
	"fmt"
	"strings"
)

// Mark is a byte with a meaning in a delimited file, such as the quote. The zero
// Mark leaves it to the format.
type Mark struct {
	said bool
	char byte // 0: none
}

// ParseMark takes one byte, or the word none.
func ParseMark(s string) (Mark, error) {
	switch {
	case s == "none":
		return Mark{said: true}, nil
	case len(s) != 1 || strings.ContainsAny(s, "\x00\t\r\n 0123456789"):
		return Mark{}, fmt.Errorf("%q: must be none or one byte, no digit, blank or line break", s)
	}
	return Mark{said: true, char: s[0]}, nil
}

// UnmarshalText makes a Mark a value of command lines.
func (m *Mark) UnmarshalText(text []byte) (err error) {
	*m, err = ParseMark(string(text))
	return err
}

func (m Mark) or(usual byte) byte {
	if m.said {
		return m.char
	}
	return usual
}
