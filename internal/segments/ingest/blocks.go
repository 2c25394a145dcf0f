package ingest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
)

// blockBytes is how much of a file one worker parses at a time; no record may be longer.
const blockBytes = 1 << 20

// records is how a text is cut into records, and what is done with them.
type records struct {
	// whole is the length of the whole records at the start of its argument, 0 when there is none.
	whole func(block []byte) int
	parse func(w *worker, block []byte, line int64)
	// nulls: blank lines at the end of the text are rows. Many programs write
	// one that means nothing, but in a file of one column it is how they write a null.
	nulls bool
	// escaped reports whether a line break after text would be escaped; nil: never.
	escaped func(text []byte) bool
	// complete reports whether a last line without a line break is whole all the same; nil: it never shows.
	complete func(line []byte) bool
}

// end is the length of what can be parsed of a block that others follow. Blank
// lines at its end wait for the next one, which tells whether more comes.
func (r *records) end(block []byte) int {
	end := r.whole(block)
	if r.nulls {
		return end
	}
	text := bytes.TrimRight(block[:end], "\r\n")
	if len(text) == 0 || r.escaped != nil && r.escaped(text) {
		return end
	}
	return len(text) + bytes.IndexByte(block[len(text):], '\n') + 1
}

// last is what is to be parsed of the last block.
func (r *records) last(block []byte) []byte {
	if r.nulls {
		return block
	}
	return bytes.TrimRight(block, "\r\n")
}

// readBlocks cuts a stream into blocks of whole records and has the workers
// parse them, in no order.
func (j *job) readBlocks(ctx context.Context, src io.Reader, line int64, r records) error {
	var pending sync.WaitGroup
	defer pending.Wait()
	var rest []byte
	total := 0
	for {
		buffer := j.pool.bytes.Get().(*[]byte)
		block, last, err := fill(src, append((*buffer)[:0], rest...))
		if err != nil {
			return err
		}
		total += len(block) - len(rest)
		if last {
			if err := j.checkEnd(&r, block, total, line); err != nil {
				return err
			}
			block = r.last(block)
			rest = nil
		} else {
			end := r.end(block)
			if end == 0 {
				return fmt.Errorf("line %d: a record of more than %d bytes, or a quote that is never closed", line, blockBytes)
			}
			rest = append(rest[:0], block[end:]...)
			block = block[:end]
		}
		first := line
		line += int64(bytes.Count(block, []byte{'\n'}))
		err = j.pool.submit(ctx, &pending, func(w *worker) {
			w.begin()
			r.parse(w, block, first)
			w.end(j)
			j.pool.bytes.Put(buffer)
		})
		if err != nil || last {
			return err
		}
	}
}

// fill reads until block has blockBytes. last says that the source has ended:
// its own io.EOF alone does that, any other error means that bytes are missing.
func fill(src io.Reader, block []byte) (filled []byte, last bool, err error) {
	for len(block) < blockBytes {
		n, err := src.Read(block[len(block):blockBytes])
		block = block[:len(block)+n]
		if err == io.EOF {
			return block, true, nil
		}
		if err != nil {
			return block, false, err
		}
	}
	return block, false, nil
}

// shortFile is how long a text may be to be taken as it is when its last line
// does not end, as in files that people write: the next longer ones are exports.
const shortFile = 16 << 10

// ErrNoFinalNewline: the last line of a long text does not end. Nothing else
// tells a text that was cut off from a whole one (but NDJSON, whose objects show
// their end), and the end of a cut id is an id that may be in no file.
var ErrNoFinalNewline = errors.New("the last line does not end in a line break: the file may have been cut off")

// checkEnd judges the end of a text of so many bytes, whose last block begins with the given line.
func (j *job) checkEnd(r *records, block []byte, total int, line int64) error {
	n := len(block)
	if n == 0 || block[n-1] == '\n' || j.file.input.FinalNewline == NewlineOptional {
		return nil
	}
	if total <= shortFile && j.file.input.FinalNewline != NewlineRequired {
		return nil
	}
	start := bytes.LastIndexByte(block, '\n') + 1
	if j.file.input.FinalNewline != NewlineRequired && r.complete != nil && r.complete(block[start:]) {
		return nil
	}
	return fmt.Errorf("line %d: %q: %w", line+int64(bytes.Count(block, []byte{'\n'})), clip(block[start:], maxShown), ErrNoFinalNewline)
}

// wholeLines is the length of the whole lines at the start of block.
func wholeLines(block []byte) int { return bytes.LastIndexByte(block, '\n') + 1 }

// skipBOM drops a UTF-8 byte order mark and refuses UTF-16.
func skipBOM(src *source) error {
	head, err := src.peek(3)
	if err != nil {
		return err
	}
	if bytes.HasPrefix(head, []byte{0xef, 0xbb, 0xbf}) {
		_, err = src.Discard(3)
		return err
	}
	if bytes.HasPrefix(head, []byte{0xff, 0xfe}) || bytes.HasPrefix(head, []byte{0xfe, 0xff}) {
		return errors.New("the text is UTF-16, it must be UTF-8")
	}
	return nil
}

// parseID reads a decimal user id. Spaces around it are allowed, nothing else is.
func parseID(field []byte) (uint32, bool) {
	if n := len(field); n > 0 && (field[0] <= ' ' || field[n-1] <= ' ') {
		field = bytes.Trim(field, " \t\r")
	}
	if len(field) == 0 {
		return 0, false
	}
	var v uint64
	for _, c := range field {
		if c -= '0'; c > 9 {
			return 0, false
		}
		if v = v*10 + uint64(c); v > maxID {
			return 0, false
		}
	}
	return uint32(v), true
}

const maxID = 1<<32 - 1

// whyNotID is the reason why parseID refused field.
func whyNotID(field []byte) string {
	if len(bytes.TrimSpace(field)) == 0 {
		return reasonEmpty
	}
	return reasonNotID
}

// parseText parses one id per line.
func parseText(w *worker, block []byte, line int64) {
	ids := w.ids
	for i := 0; i < len(block); line++ {
		start, v := i, uint64(0)
		for i < len(block) {
			c := block[i] - '0'
			if c > 9 {
				break
			}
			v = v*10 + uint64(c)
			i++
		}
		if digits := i - start; digits > 0 && digits <= 10 && v <= maxID && (i == len(block) || block[i] == '\n') {
			ids = append(ids, uint32(v))
			i++
			continue
		}
		field := block[start:]
		if end := bytes.IndexByte(field, '\n'); end >= 0 {
			field = field[:end]
		}
		i = start + len(field) + 1
		if id, ok := parseID(field); ok {
			ids = append(ids, id)
		} else {
			w.reject(line, bytes.TrimRight(field, "\r"), whyNotID(field))
		}
	}
	w.ids = ids
}
