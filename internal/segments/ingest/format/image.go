package format

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"capper/internal/ids"
)

// addImage works like Block.Add, but for ids that are not dense 32-bit integers.
func (b *Block) addImage(row int64, id, segment []byte) {
	image, rest, ok := b.parse(row, id)
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
	b.keepImage(image, rest, id)
}

// The method "parse" converts an id to its image (64-bit number that stands for the id). If the id is invalid, the
// method "parse" rejects the row. For a UUID, the result "rest" is the 64 bits that the image lacks. The method "parse"
// ignores blanks around an id, except for ids of the kind text.
func (b *Block) parse(row int64, id []byte) (image, rest uint64, ok bool) {
	blank := len(bytes.TrimSpace(id)) == 0
	if b.kind != ids.Text {
		id = bytes.Trim(id, " \t\r")
	}
	image, rest, err := b.parser.ParseRest(id)
	switch {
	case blank:
		b.Reject(row, id, reasonEmpty)
	case err != nil:
		b.Reject(row, id, err.Error())
	default:
		return image, rest, true
	}
	return 0, 0, false
}

// keepImage adds the image of an id (64-bit number that stands for the id) to the block, with the data for converting
// the image back to the id.
func (b *Block) keepImage(image, rest uint64, text []byte) {
	b.Images = append(b.Images, image)
	if b.rests {
		b.Rests = append(b.Rests, rest)
	}
	if b.texts {
		b.Texts.Append(text)
	}
}

// parseLines parses a block of a text file with one id per line, for ids that are not dense (32-bit integers).
func parseLines(into *Block, block []byte, line int64) {
	for ; len(block) > 0; line++ {
		field, rest, _ := bytes.Cut(block, []byte{'\n'})
		into.Add(line, bytes.TrimRight(field, "\r"), nil)
		block = rest
	}
}

// The method "unescaped" removes the escape characters from a field of a row, and returns the result. If a letter or
// digit is escaped, the result "ok" is false, because it stands for a control character and no id contains control
// characters.
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

// jsonID returns the text of an id that is a JSON value: a string or, for ids of the kind uint64, also a number.
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

// The method takeOther works like the function takeRow, but for ids that are not dense 32-bit integers.
func (p *pageIDs) takeOther(into *Block, row int64, i int, code int16, table bool) {
	if p.present != nil && !p.present[i] {
		into.Reject(row, []byte("null"), reasonEmpty)
		return
	}
	if code == noSegment {
		into.Reject(row, []byte("null"), reasonNoSegment)
		return
	}
	image, rest, text, ok := p.parse(into, row, i)
	if !ok {
		return
	}
	into.keepImage(image, rest, text)
	if table {
		into.Codes = append(into.Codes, uint16(code))
	}
}

// The method "parse" converts the value with the index i in a Parquet page to the image of an id (64-bit number that
// stands for the id). The method "parse" also returns the 64 bits of a UUID that the image lacks, or the text of a
// string. If the id is invalid, the method "parse" rejects the row.
func (p *pageIDs) parse(into *Block, row int64, i int) (image, rest uint64, text []byte, ok bool) {
	switch p.as {
	case packed:
		image, rest = into.parser.Packed(p.raw[i])
	case signed, unsigned:
		v := p.values[i]
		if p.as == signed && v < 0 {
			into.Reject(row, p.text(i), "is not a user id (0 to 18446744073709551615)")
			return 0, 0, nil, false
		}
		var word [8]byte
		binary.BigEndian.PutUint64(word[:], uint64(v))
		image, _ = into.parser.Packed(word[:])
	default:
		text = p.text(i)
		image, rest, ok = into.parse(row, text)
		return image, rest, text, ok
	}
	return image, rest, nil, true
}
