package format

import (
	"fmt"
	"strings"

	"capper/internal/ids"
)

// The type Kind is the kind of a delimited file: text, CSV or TSV.
type Kind int

// The constants Text, CSV and TSV are the kinds of delimited files. A text file has one id per line.
const (
	Text Kind = iota
	CSV
	TSV
)

// The type Header is the setting for the first row of a CSV, TSV or text file: a header with the names of the columns,
// or a row with data.
type Header string

// If the setting is headerAuto, the parser treats the first row as a header in two cases. In the first case, the user
// of segmentbuild requests a column by name. In the second case, the first row has no number, and one of its fields is
// a usual name of an id column, such as user_id, customerId or order_id. If the user requests the id column by number,
// the field with the usual name must be in this column.
const (
	headerAuto Header = ""
	HeaderYes  Header = "yes"
	HeaderNo   Header = "no"
)

// DelimitedOptions contains the settings for reading a text, CSV or TSV file. The zero DelimitedOptions are for a text
// file, and let the parser detect whether the first row is a header.
type DelimitedOptions struct {
	Kind   Kind
	Header Header
	// IDColumn and SegmentColumn are names of columns, or numbers from 1. If a field is empty, the parser detects the
	// column.
	IDColumn, SegmentColumn string
	// If Table is true, every row also has the name of a segment or set.
	Table bool
	// Delimiter separates columns. If Delimiter is 0, the usual delimiter of the file's kind applies.
	Delimiter byte
	// Quote and Escape are special characters. If a field is zero, the usual character of the file's kind applies.
	Quote, Escape Mark
	// Scheme is the kind and hash key of the ids. If Scheme is nil, the ids are dense (32-bit integers).
	Scheme *ids.Scheme
}

// The method "dialect" returns the special characters of the file: the requested characters, or else the usual
// characters for the kind of file. By default, TSV has no quotes, because PostgreSQL (COPY), MySQL (-B, INTO OUTFILE)
// and Hive write TSV with backslashes.
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
			"the delimiter %q must differ from the quote and the escape character",
			d.delimiter)
	}
	return d, nil
}

// A Mark is one special character of a text, CSV or TSV file, such as the quote. If a Mark is zero, the default
// character of the format applies.
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
		return Mark{}, fmt.Errorf("%q: must be the word none or a byte that is not a digit, blank or line break", s)
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
