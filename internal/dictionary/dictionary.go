package dictionary

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math/bits"
	"sort"
	"sync"
)

// Unknown is the number that a dictionary returns for a missing image (64-bit number that stands for a user id).
const Unknown = 1<<32 - 1

const (
	magic       = "capdict1"
	headerBytes = 16
	rowMost     = 24 // maximum of the average number of images per row
)

// A Dictionary maps the images of user ids (64-bit numbers that stand for ids) to consecutive numbers. Bitmaps contain
// these numbers. A Dictionary is immutable, shares the bytes that were passed to Open, and is safe for concurrent use.
type Dictionary struct {
	rests []byte // the low bits of the images; the bytes of the index follow within the capacity
	index []byte
	count uint32
	shift uint // 64 - number of row bits
	width int
	mask  uint64
}

// The function "shape" returns the number of upper bits of an image that choose its row in a dictionary of n images.
// The function "shape" also returns the number of bytes per image within a row.
func shape(n uint32) (rowBits uint, width int) {
	if n > rowMost {
		rowBits = uint(bits.Len32((n - 1) / rowMost))
	}
	return rowBits, int(64-rowBits+7) / 8
}

// Size returns the length in bytes of a dictionary file with n images (64-bit numbers that stand for ids).
func Size(n uint32) int64 {
	rowBits, width := shape(n)
	return headerBytes + int64(n)*int64(width) + 4*(1<<rowBits+1)
}

// Open checks every byte of a dictionary file and returns the Dictionary. The Dictionary shares the memory of raw. Open
// uses two goroutines.
func Open(raw []byte) (*Dictionary, error) {
	if len(raw) < headerBytes || string(raw[:8]) != magic {
		return nil, fmt.Errorf("dictionary: the file must begin with the bytes %q", magic)
	}
	n := binary.LittleEndian.Uint32(raw[8:])
	rowBits, width := shape(n)
	if n == Unknown {
		return nil, fmt.Errorf("dictionary: must have at most %d id images (64-bit hashes of ids), got %d",
			uint32(Unknown)-1, n)
	}
	if got := binary.LittleEndian.Uint32(raw[12:]); got != uint32(rowBits) {
		return nil, fmt.Errorf(
			"dictionary: the file has %d bits per row number, but its %d id images (64-bit numbers) need %d bits",
			got, n, rowBits)
	}
	at := headerBytes + int64(n)*int64(width)
	if size := Size(n); size != int64(len(raw)) {
		return nil, fmt.Errorf("dictionary: the file has %d bytes, but %d id images (64-bit hashes of ids) need %d",
			len(raw), n, size)
	}
	d := &Dictionary{rests: raw[headerBytes:], index: raw[at:], count: n, shift: 64 - rowBits, width: width}
	d.mask = ^uint64(0) >> rowBits
	return d, d.check()
}

// The method "check" checks the row index and the images of a dictionary file. The row index (number of the first image
// of each row) must begin at 0, never descend, and end at the number of images. The images must ascend within each row.
func (d *Dictionary) check() error {
	rows := d.rows()
	if d.start(0) != 0 || d.start(rows) != d.count {
		return errors.New(
			"dictionary: the row index must begin at 0 and end at the number of id images (64-bit hashes of ids)")
	}
	var failures [2]error
	var workers sync.WaitGroup
	for i := range failures {
		workers.Go(func() { failures[i] = d.checkRows(rows*i/2, rows*(i+1)/2) })
	}
	workers.Wait()
	return errors.Join(failures[:]...)
}

func (d *Dictionary) checkRows(row, end int) error {
	excess := ^d.mask
	if d.width < 8 {
		excess &= 1<<(8*d.width) - 1
	}
	width, all := d.width, ^uint64(0)>>(64-8*d.width)
	first := d.start(row)
	for ; row < end; row++ {
		last := d.start(row + 1)
		if last < first || last > d.count {
			return fmt.Errorf(
				"dictionary: a row index entry must be at most %d and must not be below the previous entry: "+
					"the entry after row %d is wrong", d.count, row)
		}
		if last > first {
			at := int(first) * width
			before := binary.LittleEndian.Uint64(d.rests[at:]) & all
			bad := before & excess
			for range last - first - 1 {
				at += width
				rest := binary.LittleEndian.Uint64(d.rests[at:]) & all
				bad |= rest & excess
				if rest <= before {
					return fmt.Errorf("dictionary: the id images (64-bit hashes of ids) in row %d must ascend", row)
				}
				before = rest
			}
			if bad != 0 {
				return fmt.Errorf("dictionary: an id image (64-bit number of an id) in row %d belongs to another row",
					row)
			}
		}
		first = last
	}
	return nil
}

func (d *Dictionary) rows() int             { return 1 << (64 - d.shift) }
func (d *Dictionary) start(row int) uint32  { return binary.LittleEndian.Uint32(d.index[4*row:]) }
func (d *Dictionary) rest(at uint32) uint64 { return d.mask & d.load(at) }
func (d *Dictionary) load(at uint32) uint64 {
	return binary.LittleEndian.Uint64(d.rests[int(at)*d.width:])
}

// Len returns the number of images (64-bit numbers that stand for ids) in the dictionary.
func (d *Dictionary) Len() uint32 { return d.count }

// Number returns the number of an image. If the dictionary lacks the image, the result "ok" is false and the number is
// Unknown.
func (d *Dictionary) Number(image uint64) (n uint32, ok bool) {
	row := int(image >> d.shift)
	n = d.search(d.start(row), d.start(row+1), image&d.mask)
	return n, n != Unknown
}

// The method "search" searches a row of the dictionary for an image. The row's images have the numbers first to end-1.
// The argument "rest" is the low bits of the image. The method "search" returns the image's number, or Unknown.
func (d *Dictionary) search(first, end uint32, rest uint64) uint32 {
	for n := end - first; n > 1; n = end - first {
		half := first + n/2
		if d.rest(half) <= rest {
			first = half
		} else {
			end = half
		}
	}
	if first < end && d.rest(first) == rest {
		return first
	}
	return Unknown
}

// The method Numbers sets numbers[i] to the number of images[i], or to Unknown. The slice numbers must be as long as
// images. The method Numbers reads the index for 32 images before it searches the rows of these images. The processor
// can therefore read memory for several images in parallel.
func (d *Dictionary) Numbers(images []uint64, numbers []uint32) {
	const block = 32
	var first, end [block]uint32
	for len(images) > 0 {
		part := images[:min(block, len(images))]
		for i, image := range part {
			at := binary.LittleEndian.Uint64(d.index[4*(image>>d.shift):])
			first[i], end[i] = uint32(at), uint32(at>>32)
		}
		for i, image := range part { // the first step of the binary search for each image
			half := first[i] + (end[i]-first[i])/2
			if d.rest(half) <= image&d.mask { // reading past the last image is safe, because the index follows it
				first[i] = min(half, end[i])
			} else if half > first[i] {
				end[i] = half
			}
		}
		for i, image := range part {
			numbers[i] = d.search(first[i], end[i], image&d.mask)
		}
		images, numbers = images[len(part):], numbers[len(part):]
	}
}

// The method After returns the number of the lowest image in the dictionary that is above the given image. The
// dictionary need not contain the given image. If no image in the dictionary is above the given image, After returns
// the number of images (the result of Len).
func (d *Dictionary) After(image uint64) uint32 {
	row := int(image >> d.shift)
	first, rest := d.start(row), image&d.mask
	return first + uint32(sort.Search(int(d.start(row+1)-first), func(i int) bool {
		return d.rest(first+uint32(i)) > rest
	}))
}

// Image returns the image with the given number. The number must be below the result of Len.
func (d *Dictionary) Image(number uint32) uint64 { return d.compose(d.rowOf(number), number) }

// rowOf returns the row that contains the image with the given number. The number must be below the result of Len.
func (d *Dictionary) rowOf(number uint32) int {
	return sort.Search(d.rows(), func(row int) bool { return d.start(row+1) > number })
}

// nearRows limits a linear search: AppendImages tries the next nearRows rows one after the other, and otherwise
// searches the row of a number by binary search.
const nearRows = 16

// AppendImages converts numbers of the dictionary to images, and appends the images to dst. The numbers must be below
// the result of Len. AppendImages is fastest with ascending numbers.
func AppendImages[Image ~uint64](dst []Image, d *Dictionary, numbers []uint32) []Image {
	row := 0
	for _, number := range numbers {
		if d.start(row) > number || d.start(min(row+nearRows, d.rows())) <= number {
			row = d.rowOf(number)
		}
		for d.start(row+1) <= number {
			row++
		}
		dst = append(dst, Image(d.compose(row, number)))
	}
	return dst
}

// The method "compose" returns the image with the given number. The argument "row" is the image's row in the
// dictionary, which determines the upper bits of the image.
func (d *Dictionary) compose(row int, number uint32) uint64 {
	return uint64(row)<<d.shift | d.rest(number) // if row 0 is the only row, the shift by 64 bits returns 0
}

// All returns an iterator over the numbers and images of the dictionary in ascending order.
func (d *Dictionary) All() iter.Seq2[uint32, uint64] {
	return func(yield func(uint32, uint64) bool) {
		for row, number := 0, uint32(0); number < d.count; row++ {
			for end := d.start(row + 1); number < end; number++ {
				if !yield(number, d.compose(row, number)) {
					return
				}
			}
		}
	}
}

// Merge matches the images of two dictionaries, and returns an iterator over the numbers of the dictionary "old" in
// ascending order. With each number, the iterator yields the number that the same image has in the dictionary "new". If
// the dictionary "new" lacks the image, the iterator yields Unknown instead. The numbers that the iterator yields for
// "new" are also in ascending order.
func Merge(old, new *Dictionary) iter.Seq2[uint32, uint32] {
	return func(yield func(uint32, uint32) bool) {
		row, at := 0, uint32(0)
		for number, image := range old.All() {
			found := uint32(Unknown)
			for ; at < new.count; at++ {
				for new.start(row+1) <= at {
					row++
				}
				if is := new.compose(row, at); is >= image {
					if is == image {
						found = at
					}
					break
				}
			}
			if !yield(number, found) {
				return
			}
		}
	}
}
