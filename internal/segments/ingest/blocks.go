package ingest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"capper/internal/segments/ingest/format"
)

// blockBytes is how much of a file one worker parses at a time; no row may be longer.
const blockBytes = format.HeadBytes

// readBlocks cuts a stream into blocks of whole rows and has the workers
// parse them, in no order.
func (f *fileReader) readBlocks(ctx context.Context, src io.Reader, line int64, s format.Syntax) error {
	var pending sync.WaitGroup
	defer pending.Wait()
	var rest []byte
	total := 0
	for {
		buffer := f.pool.buffers.Get().(*[]byte)
		block, last, err := fill(src, append((*buffer)[:0], rest...))
		if err != nil {
			return err
		}
		total += len(block) - len(rest)
		if last {
			if err := f.checkEnd(&s, block, total, line); err != nil {
				return err
			}
			block = s.Rest(block)
			rest = nil
		} else {
			end := s.Ready(block)
			if end == 0 {
				return fmt.Errorf("line %d: a row has more than %d bytes, or a quote is never closed", line,
					blockBytes)
			}
			rest = append(rest[:0], block[end:]...)
			block = block[:end]
		}
		first := line
		line += int64(bytes.Count(block, []byte{'\n'}))
		err = f.pool.do(ctx, &pending, func(w *worker) {
			w.block.Reset()
			s.Parse(w.block, block, first)
			f.take(w)
			f.pool.buffers.Put(buffer)
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
var ErrNoFinalNewline = errors.New("the last line does not end in a line break: the file may be truncated")

// checkEnd judges the end of a text of so many bytes, whose last block begins with the given line.
func (f *fileReader) checkEnd(s *format.Syntax, block []byte, total int, line int64) error {
	n := len(block)
	if n == 0 || block[n-1] == '\n' || f.file.input.FinalNewline == newlineOptional {
		return nil
	}
	if total <= shortFile && f.file.input.FinalNewline != newlineRequired {
		return nil
	}
	start := bytes.LastIndexByte(block, '\n') + 1
	if f.file.input.FinalNewline != newlineRequired && s.Complete != nil && s.Complete(block[start:]) {
		return nil
	}
	return fmt.Errorf("line %d: %q: %w", line+int64(bytes.Count(block, []byte{'\n'})), format.Clip(block[start:]),
		ErrNoFinalNewline)
}
