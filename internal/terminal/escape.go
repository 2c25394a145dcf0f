package terminal

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Escape returns the text s as one line that is safe to print. Escape escapes line breaks, tabs, and all characters
// that the type Writer escapes. The result fits into one cell of a table.
func Escape(s string) string {
	if !harmful(s) && !strings.ContainsAny(s, "\n\t") {
		return s
	}
	return strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(string(appendSafe(nil, []byte(s))))
}

// Writer escapes every character that controls a terminal, except line breaks and tabs. The Writer writes escapes in
// the syntax of JSON, so that JSON text remains valid. A Writer is safe for concurrent use.
type Writer struct {
	to   io.Writer
	mu   sync.Mutex
	part []byte // bytes of an incomplete character
}

// NewWriter returns a Writer that passes the escaped text to another writer.
func NewWriter(to io.Writer) *Writer { return &Writer{to: to} }

// Unwrap returns the underlying writer without escaping, for code that draws on the terminal.
func (w *Writer) Unwrap() io.Writer { return w.to }

// Write writes all bytes of p or returns an error.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := p
	if len(w.part) > 0 {
		text = append(w.part, p...)
	}
	whole := wholeCharacters(text)
	w.part = append([]byte(nil), text[whole:]...)
	text = text[:whole]
	if harmful(text) {
		text = appendSafe(make([]byte, 0, 2*len(text)), text)
	}
	if _, err := w.to.Write(text); err != nil {
		return 0, err
	}
	return len(p), nil
}

// wholeCharacters returns the length of the text without an incomplete UTF-8 character at its end.
func wholeCharacters(text []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if start := len(text) - n; utf8.RuneStart(text[start]) {
			if utf8.FullRune(text[start:]) {
				break
			}
			return start
		}
	}
	return len(text)
}

// The function "harmful" reports whether the text contains a character that must be escaped. The function is fast for
// ASCII text, which is the usual case.
func harmful[T string | []byte](text T) bool {
	for i := 0; i < len(text); i++ {
		if c := text[i]; c < ' ' && c != '\n' && c != '\t' || c >= 0x7f {
			return true
		}
	}
	return false
}

func appendSafe(dst, text []byte) []byte {
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		switch {
		case r == utf8.RuneError && size == 1:
			dst = fmt.Appendf(dst, `\x%02x`, text[0])
		case r == '\n' || r == '\t' || !unicode.Is(unicode.C, r) && !unicode.Is(unicode.Zl, r) &&
			!unicode.Is(unicode.Zp, r):
			dst = append(dst, text[:size]...)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			dst = fmt.Appendf(dst, `\u%04x\u%04x`, high, low)
		default:
			dst = fmt.Appendf(dst, `\u%04x`, r)
		}
		text = text[size:]
	}
	return dst
}
