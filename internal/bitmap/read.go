package bitmap

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Read checks an encoded bitmap and returns it as a Bitmap. The returned Bitmap shares the memory of the slice raw, so
// the caller must not change raw afterwards. The error describes the fault in the bytes.
func Read(raw []byte) (*Bitmap, error) {
	if len(raw) > MaxBytes {
		return nil, fmt.Errorf("bitmap has %d bytes, but must have at most %d", len(raw), MaxBytes)
	}
	list, err := parseContainers(raw)
	if err != nil {
		return nil, err
	}
	return newBitmap(raw, list), nil
}

var errTruncated = errors.New("truncated")

// parseContainers parses an encoded bitmap into containers. The function parseContainers checks the order, the bounds
// and the number of ids of every container, and that no byte follows the last container. The returned containers use
// the memory of the slice raw, so the caller must not change raw. The time of parseContainers is linear in the size of
// raw.
func parseContainers(raw []byte) ([]container, error) {
	list, isRun, rest, err := parseHeader(raw)
	if err != nil {
		return nil, err
	}
	if isRun == nil || len(list) >= noOffsetBelow {
		if rest, err = checkOffsets(raw, rest, list, isRun); err != nil {
			return nil, err
		}
	}
	for i := range list {
		c := &list[i]
		size, err := c.measure(rest)
		if err != nil {
			return nil, fmt.Errorf("read bitmap container %d (ids from %d): %w", i, uint32(c.key)<<16, err)
		}
		c.data, rest = rest[:size], rest[size:]
		if err := c.check(); err != nil {
			return nil, fmt.Errorf("read bitmap container %d (ids from %d): %w", i, uint32(c.key)<<16, err)
		}
	}
	if len(rest) > 0 {
		return nil, fmt.Errorf("%d extra bytes after the end of the bitmap", len(rest))
	}
	return list, nil
}

// parseHeader parses the cookie, the run flags and the descriptors of an encoded bitmap. The result "isRun" (flags of
// run containers) is nil if the encoded bitmap has no run containers.
func parseHeader(raw []byte) (list []container, isRun, rest []byte, err error) {
	if len(raw) < 8 {
		return nil, nil, nil, errTruncated
	}
	cookie := binary.LittleEndian.Uint32(raw)
	var count uint32
	switch {
	case cookie == cookieNoRun:
		count, rest = binary.LittleEndian.Uint32(raw[4:]), raw[8:]
	case cookie&0xffff == cookieRun:
		count, rest = cookie>>16+1, raw[4:]
		flags := int(count+7) / 8
		if len(rest) < flags {
			return nil, nil, nil, errTruncated
		}
		isRun, rest = rest[:flags], rest[flags:]
		if spare := isRun[flags-1] >> ((count-1)%8 + 1); spare != 0 {
			return nil, nil, nil, fmt.Errorf(
				"bitmap has only %d containers, but its header marks further containers as run containers", count)
		}
	default:
		return nil, nil, nil, fmt.Errorf(
			"data is not a portable 32-bit roaring bitmap: its format number (cookie) is %d", cookie)
	}
	if count > maxContainers {
		return nil, nil, nil, fmt.Errorf("bitmap has %d containers, but must have at most %d", count, maxContainers)
	}
	if len(rest) < int(count)*descriptorBytes {
		return nil, nil, nil, errTruncated
	}
	list = make([]container, count)
	for i := range list {
		c := &list[i]
		c.key = binary.LittleEndian.Uint16(rest[4*i:])
		c.card = int(binary.LittleEndian.Uint16(rest[4*i+2:])) + 1
		c.kind = kindOf(isRun, i, c.card)
		if i > 0 && c.key <= list[i-1].key {
			return nil, nil, nil, fmt.Errorf(
				"bitmap container %d: the key %d must be greater than the previous container's key %d",
				i, c.key, list[i-1].key)
		}
	}
	return list, isRun, rest[int(count)*descriptorBytes:], nil
}

func kindOf(isRun []byte, i, card int) containerKind {
	switch {
	case isRun != nil && isRun[i/8]>>(i%8)&1 == 1:
		return runKind
	case card > arrayMax:
		return bitmapKind
	default:
		return arrayKind
	}
}

// checkOffsets checks that every stored offset is the real position of the container. Programs that seek to an offset
// therefore decode the same set as programs that read sequentially.
func checkOffsets(raw, rest []byte, list []container, isRun []byte) ([]byte, error) {
	if len(rest) < 4*len(list) {
		return nil, errTruncated
	}
	offsets, rest := rest[:4*len(list)], rest[4*len(list):]
	at := len(raw) - len(rest)
	for i := range list {
		if got := binary.LittleEndian.Uint32(offsets[4*i:]); int(got) != at {
			return nil, fmt.Errorf("bitmap container %d: the header gives the offset %d, but the data begins at %d",
				i, got, at)
		}
		size, err := list[i].measure(raw[at:])
		if err != nil {
			return nil, fmt.Errorf("container %d: %w", i, err)
		}
		at += size
	}
	return rest, nil
}

// The method "measure" returns the length of the container's data in bytes. The argument "rest" begins with this data.
func (c *container) measure(rest []byte) (int, error) {
	if c.kind == runKind {
		if len(rest) < 2 {
			return 0, errTruncated
		}
		c.runs = int(binary.LittleEndian.Uint16(rest))
	}
	if len(rest) < c.size() {
		return 0, errTruncated
	}
	return c.size(), nil
}
