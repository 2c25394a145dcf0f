package format

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"capper/internal/ids"
)

// addImage is Add for ids that are not dense.
func (b *Block) addImage(row int64, id, segment []byte) {
	image, ok := b.imageOf(row, id)
	if !ok {
		return
	}
	if b.names != nil {
		code, err := b.names.Code(bytes.TrimSpace(segment))
		if err != nil {
			b.Reject(row, segment, err.Error())
			return
		}
		b.Codes = append(b.Codes, code)
	}
	b.Images = append(b.Images, image)
}

// imageOf returns the image of an id, or rejects the row.
func (b *Block) imageOf(row int64, id []byte) (image uint64, ok bool) {
	text := id
	if !b.blanks {
		text = bytes.Trim(id, " \t\r")
	}
	if len(bytes.TrimSpace(text)) == 0 {
		b.Reject(row, id, reasonEmpty)
		return 0, false
	}
	image, err := b.parser.Parse(text)
	if err != nil {
		b.Reject(row, id, err.Error())
		return 0, false
	}
	return image, true
}

// parseLines parses a text with one id per line, which is not dense.
func parseLines(into *Block, block []byte, line int64) {
	for ; len(block) > 0; line++ {
		field, rest, _ := bytes.Cut(block, []byte{'\n'})
		into.Add(line, bytes.TrimRight(field, "\r"), nil)
		block = rest
	}
}

// unescaped returns a field without the escapes of the dialect: an escaped byte stands for itself, and escaped letters
// stand for control characters, which are in no id. ok is false for such a letter.
func (d *dialect) unescaped(field []byte) (plain []byte, ok bool) {
	if d.escape == 0 || bytes.IndexByte(field, d.escape) < 0 {
		return field, true
	}
	for i := 0; i < len(field); i++ {
		if field[i] == d.escape {
			if i++; i == len(field) || field[i] >= 'a' && field[i] <= 'z' || field[i] >= 'A' && field[i] <= 'Z' ||
				field[i] >= '0' && field[i] <= '9' {
				return nil, false
			}
		}
		plain = append(plain, field[i])
	}
	return plain, true
}

const reasonEscape = "not a user id: holds an escaped character"

// jsonID returns the text of an id in JSON: a string, or a number where the kind has numbers.
func (b *Block) jsonID(value []byte, kind ids.Kind) ([]byte, error) {
	if len(value) > 0 && value[0] == '"' {
		if text, ok := jsonString(value); ok {
			return text, nil
		}
	}
	if kind == ids.Uint64 && len(value) > 0 && value[0] != '"' {
		return value, nil
	}
	return nil, fmt.Errorf("is not a user id: must be a JSON string, got %s", Clip(value))
}

// takeOther is takeRow for ids that are not dense.
func (p *pageIDs) takeOther(into *Block, row int64, i int, code int16, table bool) {
	if p.present != nil && !p.present[i] {
		into.Reject(row, []byte("null"), reasonEmpty)
		return
	}
	if code == noSegment {
		into.Reject(row, []byte("null"), reasonNoSegment)
		return
	}
	image, ok := p.imageOf(into, row, i)
	if !ok {
		return
	}
	into.Images = append(into.Images, image)
	if table {
		into.Codes = append(into.Codes, uint16(code))
	}
}

// imageOf returns the image of value i of a page, or rejects the row.
func (p *pageIDs) imageOf(into *Block, row int64, i int) (image uint64, ok bool) {
	switch p.as {
	case packed:
		image, _ = into.parser.Packed(p.raw[i])
	case signed, unsigned:
		v := p.values[i]
		if p.as == signed && v < 0 {
			into.Reject(row, p.text(i), "is not a user id (0 to 18446744073709551615)")
			return 0, false
		}
		var word [8]byte
		binary.BigEndian.PutUint64(word[:], uint64(v))
		image, _ = into.parser.Packed(word[:])
	default:
		return into.imageOf(row, p.text(i))
	}
	return image, true
}
