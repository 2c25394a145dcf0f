package messages

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxTitle is the maximum length of a message's title in characters.
const MaxTitle = 200

// ErrNotRemembered is the error of Store.SetTitle for a message that the store has no space to remember, and would not
// count.
var ErrNotRemembered = errors.New(
	"the store cannot keep the title of this message now, because the store has too many new messages")

// CheckTitle removes blanks at both ends of a message's title and returns the title. CheckTitle returns an error if the
// title is not UTF-8, has a hidden character, or is longer than MaxTitle. A message without a title has the title "".
func CheckTitle(title string) (string, error) {
	if !utf8.ValidString(title) {
		return "", errors.New("a title must be UTF-8")
	}
	if at := strings.IndexFunc(title, hidden); at >= 0 {
		return "",
			fmt.Errorf("a message title must have no control characters, got %q at byte %d", firstRune(title[at:]), at)
	}
	title = strings.TrimSpace(title)
	if n := utf8.RuneCountInString(title); n > MaxTitle {
		return "", fmt.Errorf("a message title must have at most %d characters, got %d", MaxTitle, n)
	}
	return title, nil
}

// The function "hidden" reports whether a character is a control character, ends a line, or changes the direction of
// text.
func hidden(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp, unicode.Bidi_Control)
}

func firstRune(text string) rune {
	r, _ := utf8.DecodeRuneInString(text)
	return r
}
