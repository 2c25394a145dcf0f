package ops

import (
	"bufio"
	"cmp"
	"container/heap"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"capper/internal/capping"
	"capper/internal/segments/ingest/format"
)

// runRows is the number of rows that the sorter sorts in memory together.
const runRows = 1_000_000

// The type sorter sorts the rows of an import by namespace, then by time, then by user.
type sorter struct {
	dir   string // parent directory of the temporary directory; "": the default
	most  int    // maximum number of rows in a run
	rows  []format.SendRow
	files []string
	made  string
	names map[string]string // texts that many rows share, such as message ids
}

func inTurn(a, b format.SendRow) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.At, b.At), cmp.Compare(a.User, b.User),
		cmp.Compare(a.ID, b.ID), cmp.Compare(a.Channel, b.Channel), cmp.Compare(a.MessageID, b.MessageID))
}

// mostNames is the maximum number of distinct texts, such as message ids, of which the sorter keeps one copy for all
// rows.
const mostNames = 10_000

// To save memory, the method "shared" returns the same copy of a text for all rows with this text.
func (s *sorter) shared(text string) string {
	if known, ok := s.names[text]; ok {
		return known
	}
	if s.names == nil || len(s.names) >= mostNames {
		s.names = make(map[string]string)
	}
	text = string([]byte(text)) // a copy, so that the memory of the whole line can be freed
	s.names[text] = text
	return text
}

func (s *sorter) add(r format.SendRow) error {
	r.Channel, r.MessageID, r.Namespace = s.shared(r.Channel), s.shared(r.MessageID), s.shared(r.Namespace)
	s.rows = append(s.rows, r)
	if len(s.rows) < cmp.Or(s.most, runRows) {
		return nil
	}
	return s.spill()
}

// The method "spill" sorts the rows in memory, and writes them to a temporary file.
func (s *sorter) spill() (err error) {
	if s.made == "" {
		if s.made, err = os.MkdirTemp(s.dir, "capper-import-*"); err != nil {
			return err
		}
	}
	slices.SortFunc(s.rows, inTurn)
	name := filepath.Join(s.made, fmt.Sprint("run-", len(s.files)))
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	s.files = append(s.files, name)
	to := bufio.NewWriterSize(file, 1<<20)
	var buffer []byte
	for _, r := range s.rows {
		buffer = appendRow(buffer[:0], r)
		_, _ = to.Write(buffer) // Flush returns the error
	}
	s.rows = s.rows[:0]
	return errors.Join(to.Flush(), file.Close())
}

func (s *sorter) close() error {
	if s.made == "" {
		return nil
	}
	return os.RemoveAll(s.made)
}

func appendRow(dst []byte, r format.SendRow) []byte {
	dst = binary.AppendVarint(dst, r.At)
	dst = binary.AppendUvarint(dst, uint64(r.User))
	for _, text := range []string{r.ID, r.Image, r.Channel, r.MessageID, r.Namespace} {
		dst = append(binary.AppendUvarint(dst, uint64(len(text))), text...)
	}
	return dst
}

// A run is a temporary file of sorted rows, together with the next row to read.
type run struct {
	from *bufio.Reader
	next format.SendRow
}

// The method "advance" reads the next row of the temporary file. At the end of the file, the method "advance" returns
// io.EOF.
func (r *run) advance() (err error) {
	if r.next.At, err = binary.ReadVarint(r.from); err != nil {
		return err
	}
	user, err := binary.ReadUvarint(r.from)
	r.next.User = capping.UserID(user)
	for _, text := range []*string{&r.next.ID, &r.next.Image, &r.next.Channel, &r.next.MessageID, &r.next.Namespace} {
		n, fault := binary.ReadUvarint(r.from)
		bytes := make([]byte, min(n, 1<<20))
		_, short := io.ReadFull(r.from, bytes)
		*text = string(bytes)
		err = errors.Join(err, fault, short)
	}
	if err != nil {
		return fmt.Errorf("temporary file: %w", err)
	}
	return nil
}

// The type "runs" is a heap of temporary files. The file whose next row comes first is on top.
type runs []*run

func (r runs) Len() int           { return len(r) }
func (r runs) Less(i, j int) bool { return inTurn(r[i].next, r[j].next) < 0 }
func (r runs) Swap(i, j int)      { r[i], r[j] = r[j], r[i] }

// Push implements heap.Interface.
func (r *runs) Push(one any) { *r = append(*r, one.(*run)) }

// Pop implements heap.Interface.
func (r *runs) Pop() any {
	last := (*r)[len(*r)-1]
	*r = (*r)[:len(*r)-1]
	return last
}

// The method "each" calls the function "yield" for all rows of the import, in sorted order. Callers may call this
// method repeatedly.
func (s *sorter) each(yield func(format.SendRow) error) (err error) {
	if len(s.files) == 0 {
		slices.SortFunc(s.rows, inTurn)
		for _, r := range s.rows {
			if err := yield(r); err != nil {
				return err
			}
		}
		return nil
	}
	if len(s.rows) > 0 {
		if err := s.spill(); err != nil {
			return err
		}
	}
	var open runs
	for _, name := range s.files {
		file, err := os.Open(name)
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }() // the file was only read
		one := &run{from: bufio.NewReaderSize(file, 1<<16)}
		if err := one.advance(); err != nil {
			return err
		}
		open = append(open, one)
	}
	heap.Init(&open)
	for len(open) > 0 {
		if err := yield(open[0].next); err != nil {
			return err
		}
		switch err := open[0].advance(); {
		case err == io.EOF:
			heap.Pop(&open)
		case err != nil:
			return err
		default:
			heap.Fix(&open, 0)
		}
	}
	return nil
}
