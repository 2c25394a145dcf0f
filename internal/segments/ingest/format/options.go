package format

import (
	"fmt"
	"strings"

	"capper/internal/ids"
)

// Kind is the kind of a delimited file: text, CSV or TSV.
type Kind int

// These constants are the kinds of delimited files. A text file has one id per line.
const (
	Text Kind = iota
	CSV
	TSV
)

// Header says whether the first row of a CSV, TSV or text file has the names of the columns.
type Header string

// headerAuto treats the first row as a header in two cases. In the first case, the user of segmentbuild requests a
// column by its name. In the second case, no field of the first row is a number, and one field is a usual name of an id
// column, such as user_id, customerId or order_id. If the user requests the id column by number, the first row must
// have such a name in that column.
const (
	headerAuto Header = ""
	HeaderYes  Header = "yes"
	HeaderNo   Header = "no"
)

// DelimitedOptions says how to read a text, CSV or TSV file. The zero value means a text file in which the parser
// detects whether the first row is a header.
type DelimitedOptions struct {
	Kind   Kind
	Header Header
	// IDColumn and SegmentColumn are names, or numbers from 1. Empty means that the column is
	// detected.
	IDColumn, SegmentColumn string
	// Table means that every row also has the name of a segment or set.
	Table bool
	// Delimiter separates columns. 0 means the delimiter of the kind.
	Delimiter byte
	// Quote and Escape are special characters. Zero values mean those of the kind.
	Quote, Escape Mark
	// Scheme is the scheme of the ids; nil means dense ids.
	Scheme *ids.Scheme
}

// dialect returns the special characters of the file: those that the user requested, or else the usual ones for the
// kind of file. TSV has no quotes, because PostgreSQL (COPY), MySQL (-B, INTO OUTFILE) and Hive write TSV with
// backslashes.
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
		d.escape = 0 // a doubled quote is always an ordinary quote
	}
	if d.delimiter == d.quote || d.delimiter == d.escape {
		return d, fmt.Errorf(
			"the delimiter %q must differ from the quote and the escape character: set another one, or none",
			d.delimiter)
	}
	return d, nil
}

// A Mark is one special character of a text, CSV or TSV file, such as the quote. The zero Mark means the default
// character of the format.
type Mark struct {
	said bool
	char byte // 0: none
}

// ParseMark parses a special character: one character, or the word "none".
func ParseMark(s string) (Mark, error) {
	switch {
	case s == "none":
		return Mark{said: true}, nil
	case len(s) != 1 || strings.ContainsAny(s, "\x00\t\r\n 0123456789"):
		return Mark{}, fmt.Errorf("%q: must be none, or one byte that is not a digit, blank or line break", s)
	}
	return Mark{said: true, char: s[0]}, nil
}

// UnmarshalText parses a Mark, such as a quote character, from the value of a command-line flag.
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
