package ids

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"sync"
)

// A Scheme is a kind of user ids together with a hash key. A Scheme converts ids to images (64-bit numbers that stand
// for ids). Schemes are immutable and safe for concurrent use. The zero Scheme is for dense ids (32-bit integers).
type Scheme struct {
	kind   Kind
	key    Key
	check  string
	mixer  mixer        // only for the kind uint64
	block  cipher.Block // only for the kinds uuid and text
	macs   subkeys      // only for the kind text
	narrow uint         // number of bits of a narrowed image; 0: images have all 64 bits
	idle   sync.Pool    // *Parser
}

// New returns the Scheme with the given kind of ids and hash key. For dense ids (32-bit integers), New ignores the hash
// key. New panics if the kind is not in the list Kinds.
func New(kind Kind, key Key) *Scheme {
	if !kind.known() {
		panic("ids: no such kind: " + kind.String())
	}
	if kind == Dense {
		return &Scheme{}
	}
	s := &Scheme{kind: kind, key: key, check: checkOf(kind, key)}
	switch kind {
	case Uint64:
		s.mixer = newMixer(key)
	case UUID, Text:
		block, err := aes.NewCipher(key[:])
		if err != nil {
			panic(err) // never happens: 16 bytes are always a valid key of AES-128
		}
		s.block, s.macs = block, newSubkeys(block)
	}
	return s
}

// The function Narrow returns a copy of a scheme (kind and hash key of ids) in which many ids share an image (64-bit
// number that stands for an id). The copy has 2 to the power of the argument "bits" (1 to 63) different images, still
// spread over all 64-bit numbers. Only tests may call Narrow: a test in internal/architecture rejects other callers. A
// narrowed scheme cannot convert images to ids. For a narrowed scheme and its original, the method Check returns the
// same checksum. The function Narrow panics if ids are dense.
func Narrow(s *Scheme, bits uint) *Scheme {
	if bits < 1 || bits > 63 || s.kind == Dense {
		panic(fmt.Sprintf("ids: cannot cut images of the kind %s to %d bits", s.kind, bits))
	}
	narrowed := New(s.kind, s.key)
	narrowed.narrow = bits
	return narrowed
}

// checkOf returns the checksum of a scheme with the given kind and key; see Scheme.Check.
func checkOf(kind Kind, key Key) string {
	sum := sha256.Sum256(append([]byte("capper ids check"+kind.String()+"\x00"), key[:]...))
	return hex.EncodeToString(sum[:4])
}

// Kind returns the kind of the scheme's ids.
func (s *Scheme) Kind() Kind { return s.kind }

// Key returns the scheme's hash key. A scheme of dense ids (32-bit integers) has the zero key.
func (s *Scheme) Key() Key { return s.key }

// Check returns a checksum of the kind and the hash key: 8 hexadecimal digits, or "" for dense ids (32-bit integers).
// Stores and manifests of segments contain this checksum, so that capper can detect another kind or hash key of ids.
func (s *Scheme) Check() string { return s.check }

// Width returns the number of bytes of an id in packed form (binary form): 16 for uuid, 8 for uint64, and 0 for kinds
// without a packed form.
func (s *Scheme) Width() int {
	switch s.kind {
	case Uint64:
		return 8
	case UUID:
		return aes.BlockSize
	}
	return 0
}

// Parse returns the image of an id (64-bit number that stands for the id). The id may have any valid spelling. The
// error text of Parse does not name the field that contains the id, so the caller must put the field's name in front.
// For many ids, a Parser is faster than Scheme.Parse.
func (s *Scheme) Parse(text []byte) (image uint64, err error) {
	image, _, err = s.ParseRest(text)
	return image, err
}

// ParseRest returns the image of an id (64-bit number that stands for the id), and the rest: the 64 bits of a UUID that
// the image lacks. For ids of other kinds, the result "rest" is 0.
func (s *Scheme) ParseRest(text []byte) (image, rest uint64, err error) {
	p := s.parser()
	image, rest, err = p.ParseRest(text)
	s.idle.Put(p)
	return image, rest, err
}

// The method Packed returns the image of an id (64-bit number that stands for the id). The caller passes the id in
// packed form (binary form of Width bytes). The method Packed panics if ids of this kind ("dense" or "text") have no
// packed form, or if the argument has fewer bytes than the packed form.
func (s *Scheme) Packed(id []byte) (image uint64) {
	p := s.parser()
	image, _ = p.Packed(id)
	s.idle.Put(p)
	return image
}

func (s *Scheme) parser() *Parser {
	if p, ok := s.idle.Get().(*Parser); ok {
		return p
	}
	return s.NewParser()
}

// The method Canonical appends the canonical text of an id. The caller may pass the id in any valid spelling. The error
// text of Canonical does not name the field that contains the id, so the caller must put the field's name in front. If
// Canonical returns an error, it returns dst unchanged.
func (s *Scheme) Canonical(dst, text []byte) ([]byte, error) {
	switch s.kind {
	case UUID:
		var id [16]byte
		if !parseUUID(&id, text) {
			return dst, uuidError(text)
		}
		return appendUUID(dst, &id), nil
	case Text:
		if err := checkText(text); err != nil {
			return dst, err
		}
	default:
		if _, err := s.parseNumber(text); err != nil {
			return dst, err
		}
	}
	return append(dst, text...), nil
}

// AppendPacked appends the packed form of an id: Width bytes. The caller may pass the id in any valid spelling. The
// error text of AppendPacked does not name the field that contains the id, so the caller must put the field's name in
// front. If AppendPacked returns an error, it returns dst unchanged.
func (s *Scheme) AppendPacked(dst, text []byte) ([]byte, error) {
	switch s.kind {
	case UUID:
		var id [16]byte
		if !parseUUID(&id, text) {
			return dst, uuidError(text)
		}
		return append(dst, id[:]...), nil
	case Uint64:
		id, err := s.parseNumber(text)
		if err != nil {
			return dst, err
		}
		return binary.BigEndian.AppendUint64(dst, id), nil
	}
	return dst, fmt.Errorf(
		"only ids of the kinds 'uuid' and 'uint64' have a packed form (16 or 8 bytes), not ids of the kind %s",
		s.kind)
}

// Unpack appends the canonical text of an id. The caller passes the id in packed form (Width bytes). Unpack panics if
// ids of this kind ("dense" or "text") have no packed form, or if the argument has fewer bytes than the packed form.
func (s *Scheme) Unpack(dst, id []byte) []byte {
	if s.kind == UUID {
		return appendUUID(dst, (*[16]byte)(id))
	}
	s.mustPack()
	return strconv.AppendUint(dst, binary.BigEndian.Uint64(id), 10)
}

func (s *Scheme) mustPack() {
	if s.Width() == 0 {
		panic("ids: no packed form of the kind " + s.kind.String())
	}
}

// ErrNoWayBack reports that a scheme cannot convert an image (64-bit number that stands for an id) to the id. The
// conversion fails for ids of the kind text, and for a scheme that a test made with Narrow.
var ErrNoWayBack = errors.New(
	"an id of this kind cannot be computed from the 64-bit number (image) that stands for the id")

// The method Back appends to dst the canonical text of the id with the given image (64-bit number that stands for the
// id). For a UUID, Back also needs the argument "rest" (the 64 bits that the image lacks). For other kinds of ids, Back
// ignores this argument. The only error of Back is ErrNoWayBack.
func (s *Scheme) Back(dst []byte, image, rest uint64) ([]byte, error) {
	switch {
	case s.narrow != 0 || s.kind == Text:
		return dst, ErrNoWayBack
	case s.kind == UUID:
		p := s.parser()
		dst = appendUUID(dst, p.decrypted(image, rest))
		s.idle.Put(p)
		return dst, nil
	case s.kind == Uint64:
		image = s.mixer.back(image)
	}
	return strconv.AppendUint(dst, image, 10), nil
}

// BackPacked appends the packed form (Width bytes) of the id with the given image. For a UUID, BackPacked also needs
// the argument "rest" (the 64 bits that the image lacks). For other kinds of ids, BackPacked ignores this argument. The
// only error of BackPacked is ErrNoWayBack. BackPacked panics if the ids of the scheme are dense, because dense ids
// (32-bit integers) have no packed form.
func (s *Scheme) BackPacked(dst []byte, image, rest uint64) ([]byte, error) {
	p := s.parser()
	dst, err := p.BackPacked(dst, image, rest)
	s.idle.Put(p)
	return dst, err
}

// The method "cut" maps all images with equal upper bits to one image, in a narrowed scheme (see Narrow). The resulting
// images are spread over all 64-bit numbers. In a scheme that is not narrowed, the method "cut" returns the image
// unchanged.
func (s *Scheme) cut(image uint64) uint64 {
	if s.narrow == 0 {
		return image
	}
	return mix(image >> (64 - s.narrow))
}
