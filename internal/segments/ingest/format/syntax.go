package format

import "bytes"

// Syntax is how a text is cut into blocks of whole rows, and how these are parsed.
type Syntax struct {
	// Whole is the length of the whole rows at the start of text, 0 when there is none.
	Whole func(text []byte) int
	// Parse puts the rows of a text of whole ones into a block. line is the number of
	// the first. Several goroutines call it, each with a block of its own.
	Parse func(into *Block, text []byte, line int64)
	// Nulls: blank lines at the end of the text are rows. Many programs write
	// one that means nothing, but in a file of one column it is how they write a null.
	Nulls bool
	// Escaped reports whether a line break after text would be escaped; nil: never.
	Escaped func(text []byte) bool
	// Complete reports whether a last line without a line break is whole all the same; nil: it never shows.
	Complete func(line []byte) bool
}

// Ready is the length of what can be parsed of a text that more text follows. Blank
// lines at its end wait for the next part, which tells whether more rows come.
func (s *Syntax) Ready(text []byte) int {
	end := s.Whole(text)
	if s.Nulls {
		return end
	}
	trimmed := bytes.TrimRight(text[:end], "\r\n")
	if len(trimmed) == 0 || s.Escaped != nil && s.Escaped(trimmed) {
		return end
	}
	return len(trimmed) + bytes.IndexByte(text[len(trimmed):], '\n') + 1
}

// Rest is what is to be parsed of the last part of a text.
func (s *Syntax) Rest(text []byte) []byte {
	if s.Nulls {
		return text
	}
	return bytes.TrimRight(text, "\r\n")
}

// wholeLines is the length of the whole lines at the start of text.
func wholeLines(text []byte) int { return bytes.LastIndexByte(text, '\n') + 1 }
