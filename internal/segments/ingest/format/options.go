package format

import (
	"fmt"
	"strings"
)

// Kind is what a file is without further options.
type Kind int

// Kinds. A text has one id a line.
const (
	Text Kind = iota
	CSV
	TSV
)

// Header says whether the first row of a CSV, TSV or text file names the columns.
type Header string

// headerAuto takes the first row for a header when a column is asked for by
// name, or when it holds no number and the name of an id, such as user_id, customerId or order_id
// (in the id's column, if that is asked for by number).
const (
	headerAuto Header = ""
	HeaderYes  Header = "yes"
	HeaderNo   Header = "no"
)

// Options say how a file is to be read. The zero value is a text without a header.
type DelimitedOptions struct {
	Kind   Kind
	Header Header
	// IDColumn and SegmentColumn are names, or numbers counted from 1. Empty: found out.
	IDColumn, SegmentColumn string
	// Table: every row has a segment too.
	Table bool
	// Delimiter between columns. 0: that of the kind.
	Delimiter byte
	// Quote and Escape. Zero: those of the kind.
	Quote, Escape Mark
}

// dialect is what the options ask for, else the kind's own. TSV has no quotes:
// PostgreSQL (COPY), MySQL (-B, INTO OUTFILE) and Hive write it with backslashes.
func (o *DelimitedOptions) dialect() (dialect, error) {
	d := dialect{delimiter: ',', quote: '"'}
	if o.Kind == TSV {
		d = dialect{delimiter: '\t', escape: '\\'}
	}
	if o.Delimiter != 0 {
		d.delimiter = o.Delimiter
	}
	d.quote = o.Quote.or(d.quote)
	d.escape = o.Escape.or(d.escape)
	if d.escape == d.quote {
		d.escape = 0 // a doubled quote is a quote anyway
	}
	if d.delimiter == d.quote || d.delimiter == d.escape {
		return d, fmt.Errorf("the delimiter %q must differ from quote and escape: set another one, or none",
			d.delimiter)
	}
	return d, nil
}

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
		return Mark{}, fmt.Errorf("%q: must be none, or one byte that is not a digit, blank or line break", s)
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
