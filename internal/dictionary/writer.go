package dictionary

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
)

// A Writer writes a dictionary file from ascending images (64-bit numbers that stand for ids). A Writer keeps the index
// of the file in memory: 4 bytes per row of the dictionary.
type Writer struct {
	to     *bufio.Writer
	index  []byte
	shift  uint
	width  int
	count  uint32
	most   uint32
	last   uint64
	failed error
}

// NewWriter returns a Writer for a dictionary file with exactly n images. The number n must be below Unknown.
func NewWriter(to io.Writer, n uint32) (*Writer, error) {
	if n == Unknown {
		return nil, fmt.Errorf("write dictionary: must have at most %d id images (64-bit hashes of ids), got %d",
			uint32(Unknown)-1, n)
	}
	rowBits, width := shape(n)
	w := &Writer{to: bufio.NewWriterSize(to, 1<<20), shift: 64 - rowBits, width: width, most: n}
	w.index = make([]byte, 0, 4*(1<<rowBits+1))
	head := binary.LittleEndian.AppendUint32([]byte(magic), n)
	_, w.failed = w.to.Write(binary.LittleEndian.AppendUint32(head, uint32(rowBits)))
	return w, w.failed
}

// Add appends images to the dictionary file. The images must ascend strictly, also from one call of Add to the next.
func (w *Writer) Add(images ...uint64) error {
	for _, image := range images {
		switch {
		case w.failed != nil:
			return w.failed
		case w.count > 0 && image <= w.last:
			w.failed = fmt.Errorf(
				"write dictionary: id images (64-bit hashes of ids) must ascend, but %016x follows %016x",
				image, w.last)
			return w.failed
		case w.count == w.most:
			w.failed = fmt.Errorf(
				"write dictionary: the caller announced %d id images (64-bit hashes of ids), but added more", w.most)
			return w.failed
		}
		w.startRows(image >> w.shift)
		rest := image & (1<<w.shift - 1)
		buffer := binary.LittleEndian.AppendUint64(w.to.AvailableBuffer(), rest)
		_, w.failed = w.to.Write(buffer[:w.width])
		w.count, w.last = w.count+1, image
	}
	return w.failed
}

// startRows adds the starts of rows (ranges of images with equal upper bits) to the index. If a row up to the given row
// has no start yet, startRows sets its start to the current number of images.
func (w *Writer) startRows(row uint64) {
	for uint64(len(w.index)) <= 4*row {
		w.index = binary.LittleEndian.AppendUint32(w.index, w.count)
	}
}

// Close writes the index of the dictionary file. If the caller added fewer than the n images of NewWriter, Close
// returns an error.
func (w *Writer) Close() error {
	if w.failed == nil && w.count != w.most {
		w.failed = fmt.Errorf(
			"write dictionary: the caller added %d id images (64-bit hashes of ids), but announced %d",
			w.count, w.most)
	}
	if w.failed != nil {
		return w.failed
	}
	w.startRows(1 << (64 - w.shift))
	if _, w.failed = w.to.Write(w.index); w.failed != nil {
		return w.failed
	}
	w.failed = w.to.Flush()
	return w.failed
}
