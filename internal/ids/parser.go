package ids

import "encoding/binary"

// A Parser computes the images (64-bit numbers that stand for ids) of many ids without allocating memory. A Parser is
// for one goroutine.
type Parser struct {
	scheme *Scheme
	buffer [16]byte // a field, because the call through cipher.Block would move a local variable to the heap
}

// NewParser returns a Parser for the ids of the scheme.
func (s *Scheme) NewParser() *Parser { return &Parser{scheme: s} }

// Parse returns the image of an id (64-bit number that stands for the id). The id may have any valid spelling. The
// error text of Parse does not name the field, so the caller must put the field's name in front: `is not a UUID: "018f"
// has 4 hexadecimal digits, and a UUID has 32`.
func (p *Parser) Parse(text []byte) (image uint64, err error) {
	image, _, err = p.ParseRest(text)
	return image, err
}

// ParseRest returns the image of an id (64-bit number that stands for the id), and the rest: the 64 bits of a UUID that
// the image lacks. For ids of other kinds, the result "rest" is 0.
func (p *Parser) ParseRest(text []byte) (image, rest uint64, err error) {
	s := p.scheme
	switch s.kind {
	case UUID:
		if !parseUUID(&p.buffer, text) {
			return 0, 0, uuidError(text)
		}
		image, rest = p.encrypted()
		return image, rest, nil
	case Text:
		if err := checkText(text); err != nil {
			return 0, 0, err
		}
		return s.cut(p.mac(text)), 0, nil
	}
	id, err := s.parseNumber(text)
	if err != nil || s.kind == Dense {
		return id, 0, err
	}
	return s.cut(s.mixer.image(id)), 0, nil
}

// The method Packed returns the image (64-bit number that stands for the id) and the rest (64 bits of a UUID that the
// image lacks) of an id in packed form (Width bytes). The method Packed panics if ids of this kind ("dense" or "text")
// have no packed form, or if the argument has fewer bytes than the packed form.
func (p *Parser) Packed(id []byte) (image, rest uint64) {
	s := p.scheme
	if s.kind == UUID {
		p.buffer = [16]byte(id[:16])
		return p.encrypted()
	}
	s.mustPack()
	return s.cut(s.mixer.image(binary.BigEndian.Uint64(id))), 0
}

// AppendPacked works like Scheme.AppendPacked, but also returns the image of the id.
func (p *Parser) AppendPacked(dst, text []byte) (packed []byte, image uint64, err error) {
	if p.scheme.kind == UUID {
		if !parseUUID(&p.buffer, text) {
			return dst, 0, uuidError(text)
		}
		packed = append(dst, p.buffer[:]...)
		image, _ = p.encrypted()
		return packed, image, nil
	}
	if packed, err = p.scheme.AppendPacked(dst, text); err != nil {
		return dst, 0, err
	}
	image, _ = p.Packed(packed[len(dst):])
	return packed, image, nil
}

// BackPacked works like Scheme.BackPacked, but allocates no memory.
func (p *Parser) BackPacked(dst []byte, image, rest uint64) ([]byte, error) {
	s := p.scheme
	if s.narrow != 0 || s.kind == Text {
		return dst, ErrNoWayBack
	}
	s.mustPack()
	if s.kind == UUID {
		return append(dst, p.decrypted(image, rest)[:]...), nil
	}
	return binary.BigEndian.AppendUint64(dst, s.mixer.back(image)), nil
}

// The method "encrypted" encrypts the UUID in the parser's buffer. The two halves of the resulting AES block are the
// image and the rest of the UUID.
func (p *Parser) encrypted() (image, rest uint64) {
	p.scheme.block.Encrypt(p.buffer[:], p.buffer[:])
	image, rest = binary.BigEndian.Uint64(p.buffer[:8]), binary.BigEndian.Uint64(p.buffer[8:])
	return p.scheme.cut(image), rest
}

// The method "decrypted" returns the UUID with the given image and rest. The next call of any method of the Parser
// overwrites the returned bytes.
func (p *Parser) decrypted(image, rest uint64) *[16]byte {
	binary.BigEndian.PutUint64(p.buffer[:8], image)
	binary.BigEndian.PutUint64(p.buffer[8:], rest)
	p.scheme.block.Decrypt(p.buffer[:], p.buffer[:])
	return &p.buffer
}
