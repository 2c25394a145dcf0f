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

// readBlocks cuts a file into blocks of whole rows and passes the blocks to workers. The workers parse the blocks in
// any order.
func (f *fileReader) readBlocks(ctx context.Context, src io.Reader, line int64, s format.Syntax) error {
	var pending sync.WaitGroup
	defer pending.Wait()
	blocks := format.NewBlocks(src, line, s)
	for {
		buffer := f.pool.buffers.Get().(*[]byte)
		block, first, last, err := blocks.Next(*buffer)
		if err != nil {
			return err
		}
		if last {
			if err := f.checkEnd(&s, block, blocks.Size(), first); err != nil {
				return err
			}
			block = s.Rest(block)
		}
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

// ErrNoFinalNewline reports that the last line of a long text file has no line break, so that the file may be
// truncated. Only the missing line break reveals that the last id is truncated, because a truncated id may be the id of
// another user. NDJSON needs no line break at the end, because the closing brace of the last object shows that the file
// is complete.
var ErrNoFinalNewline = errors.New("the last line does not end in a line break: the file may be truncated")

// checkEnd returns an error if a text file seems to end too early. The argument "size" of checkEnd is the length of the
// whole text in bytes. The argument "line" of checkEnd is the number of the first line of the last block.
func (f *fileReader) checkEnd(s *format.Syntax, block []byte, size int, line int64) error {
	whole := !s.MayBeTruncated(block, size)
	switch f.file.input.FinalNewline {
	case newlineOptional:
		whole = true
	case newlineRequired:
		whole = format.LineIsClosed(block)
	}
	if whole {
		return nil
	}
	start := bytes.LastIndexByte(block, '\n') + 1
	return fmt.Errorf("line %d: %q: %w", line+int64(bytes.Count(block, []byte{'\n'})), format.Clip(block[start:]),
		ErrNoFinalNewline)
}
