package archive

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"

	"capper/internal/audit"
)

// ndjsonRows exports audit records as NDJSON. For each group of users with the same outcome, ndjsonRows encodes the
// export line once, and then changes only the user id.
type ndjsonRows struct {
	out  *bufio.Writer
	name Name // nil: ids are dense
	rows int64
	line []byte
}

func newLines(to io.Writer) *ndjsonRows { return &ndjsonRows{out: bufio.NewWriterSize(to, 1<<20)} }

// lineBegin is the text of each exported line before the user id.
const lineBegin = `{"user_id":`

func (l *ndjsonRows) Add(r *audit.Record, channel string) error {
	for i := range r.Groups {
		g := &r.Groups[i]
		var text bytes.Buffer
		e := json.NewEncoder(&text)
		e.SetEscapeHTML(false)
		if err := e.Encode(RowOf(r, g, channel)); err != nil {
			return err
		}
		rest := text.Bytes()[len(lineBegin)+1:]
		for user := range g.All() {
			if l.line = append(l.line[:0], lineBegin...); l.name == nil {
				l.line = strconv.AppendUint(l.line, uint64(user), 10)
			} else {
				id, err := json.Marshal(l.name(user))
				if err != nil {
					return err
				}
				l.line = append(l.line, id...)
			}
			l.line = append(l.line, rest...)
			if _, err := l.out.Write(l.line); err != nil {
				return err
			}
			l.rows++
		}
	}
	return nil
}

func (l *ndjsonRows) Rows() int64 { return l.rows }

func (l *ndjsonRows) Close() error { return errors.Join(l.out.Flush()) }
