package format

import "bytes"

// Syntax says how to cut a text into blocks of complete rows and how to parse them.
type Syntax struct {
	// Whole returns the length of the complete rows at the start of text, or 0 if there is none.
	Whole func(text []byte) int
	// Parse parses a text of complete rows into a block. line is the number of the first line. Several
	// goroutines call Parse, each with its own block.
	Parse func(into *Block, text []byte, line int64)
	// Nulls means that blank lines at the end of the text are rows. Many programs end a file with a
	// meaningless blank line, but in a file of one column it stands for a null.
	Nulls bool
	// Escaped reports whether a line break after text would be escaped; nil means never.
	Escaped func(text []byte) bool
	// Complete reports whether a last line without a line break is complete; nil means that this is
	// unknown.
	Complete func(line []byte) bool
}

// Ready returns the length of the part of a text that can be parsed before more text arrives. Blank
// lines at the end wait for the next part, which shows whether more rows follow.
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

// Rest returns the part of the last text that must be parsed.
func (s *Syntax) Rest(text []byte) []byte {
	if s.Nulls {
		return text
	}
	return bytes.TrimRight(text, "\r\n")
}

// wholeLines returns the length of the complete lines at the start of text.
func wholeLines(text []byte) int { return bytes.LastIndexByte(text, '\n') + 1 }
