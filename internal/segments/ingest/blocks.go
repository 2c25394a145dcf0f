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

// blockBytes is the size of the block that one worker parses at a time, and the maximum length of a
// row.
const blockBytes = format.HeadBytes

// readBlocks cuts a stream into blocks of whole rows. The workers parse the blocks in any order.
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

// fill reads until block has blockBytes. last is true if the source returned its own io.EOF; any other
// error means that bytes are missing.
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

// shortFile is the length up to which a text may lack a final line break, like many hand-written
// files. Longer files are exports.
const shortFile = 16 << 10

// ErrNoFinalNewline reports that the last line of a long text has no line break. A truncated text
// cannot be recognised in another way, except in NDJSON, where an object shows its own end. A
// truncated id could be the id of another user.
var ErrNoFinalNewline = errors.New("the last line does not end in a line break: the file may be truncated")

// checkEnd checks the end of a text. total is the text's length in bytes, and line is the number of
// the first line of the last block.
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
