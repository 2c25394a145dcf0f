package format

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// FuzzSends checks that CSV and TSV files of sends have the rows, the bad rows and the errors that
// encoding/csv finds.
func FuzzSends(f *testing.F) {
	f.Add("7,1795175998,a\n\n\r\n8,1795175998,\"b\"\"\r\nc\"\n9,1795175998\n", false)
	f.Add("7\t1795175998\t\"a\nb\tc\"\r\n8\t1795175998\td\r", true)
	f.Add("7,1795175998,\"a\nb\"c\n", false)
	f.Add("7,1795175998,a\"b\n", false)
	f.Add("7,1795175998,a\n\"8,1795175998,b\n9,1795175998,c\n", false)
	f.Fuzz(func(t *testing.T, content string, tabs bool) {
		header, name, delimiter := "user_id,at,message_id\n", "x.csv", ','
		if tabs {
			header, name, delimiter = strings.ReplaceAll(header, ",", "\t"), "x.tsv", '\t'
		}
		var got, want []string
		note := func(to *[]string) func(SendRow, *RowError) error {
			return func(row SendRow, bad *RowError) error {
				if bad != nil {
					*to = append(*to, bad.Error())
				} else {
					*to = append(*to, fmt.Sprintf("%+v", row))
				}
				return nil
			}
		}
		o := SendOptions{Now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}
		err := ReadSends(t.Context(), StandardInput{strings.NewReader(header + content)}, name, o, nil, note(&got))

		reader := &sendReader{SendOptions: o, names: usual.list(), yield: note(&want)}
		reference := csv.NewReader(strings.NewReader(header + content))
		reference.Comma = delimiter
		_, fault := reference.Read()
		for fault == nil {
			var fields []string
			fields, fault = reference.Read()
			line := 0
			if fault == nil || errors.Is(fault, csv.ErrFieldCount) {
				line, _ = reference.FieldPos(0)
			}
			switch {
			case fault == nil:
				found := record{columnUser: []byte(fields[0]), columnAt: []byte(fields[1]),
					columnMessageID: []byte(fields[2])}
				require.NoError(t, reader.take(int64(line), &found, nil))
			case errors.Is(fault, csv.ErrFieldCount):
				fault = reader.take(int64(line), nil, csv.ErrFieldCount)
			}
		}
		require.Equal(t, want, got)
		if fault == io.EOF {
			require.NoError(t, err)
		} else {
			require.EqualError(t, err, name+": "+fault.Error())
		}
	})
}
