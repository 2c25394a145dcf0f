package ids

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
)

// mixer maps uint64 ids to images with the keyed bijection that the package comment describes.
type mixer struct{ k0, k1, k2 uint64 }

func newMixer(key Key) mixer {
	sum := sha256.Sum256(append([]byte("capper ids uint64"), key[:]...))
	return mixer{
		k0: binary.BigEndian.Uint64(sum[0:]),
		k1: binary.BigEndian.Uint64(sum[8:]),
		k2: binary.BigEndian.Uint64(sum[16:]),
	}
}

func (m *mixer) image(id uint64) uint64 { return mix(mix(id^m.k0)^m.k1) ^ m.k2 }

// back computes the uint64 id from its image.
func (m *mixer) back(image uint64) uint64 { return unmix(unmix(image^m.k2)^m.k1) ^ m.k0 }

// factor1 and factor2 are the factors of mix; inverse1 and inverse2 are their inverses modulo 2^64.
const (
	factor1, inverse1 = 0xbf58476d1ce4e5b9, 0x96de1b173f119089
	factor2, inverse2 = 0x94d049bb133111eb, 0x319642b2d24d8ec3
)

// mix is variant 13 of David Stafford's mixers. mix is a bijection: flipping one bit of x flips each bit
// of the result with a probability of about one half.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * factor1
	x = (x ^ x>>27) * factor2
	return x ^ x>>31
}

// unmix is the inverse function of mix. To invert a shift to the right, unmix applies multiples of this shift until no
// bit is left.
func unmix(x uint64) uint64 {
	x = (x ^ x>>31 ^ x>>62) * inverse2
	x = (x ^ x>>27 ^ x>>54) * inverse1
	return x ^ x>>30 ^ x>>60
}

// subkeys holds the subkeys K1 and K2 of RFC 4493, section 2.3.
type subkeys struct{ whole, padded [aes.BlockSize]byte }

func newSubkeys(block cipher.Block) (keys subkeys) {
	var zero [aes.BlockSize]byte
	block.Encrypt(keys.whole[:], zero[:])
	keys.whole = doubled(keys.whole)
	keys.padded = doubled(keys.whole)
	return keys
}

// doubled returns x·2 in the finite field with 2^128 elements.
func doubled(x [aes.BlockSize]byte) (twice [aes.BlockSize]byte) {
	const reducer = 0x87
	high, low := binary.BigEndian.Uint64(x[:8]), binary.BigEndian.Uint64(x[8:])
	binary.BigEndian.PutUint64(twice[:8], high<<1|low>>63)
	binary.BigEndian.PutUint64(twice[8:], low<<1^high>>63*reducer)
	return twice
}

// mac returns the upper 64 bits of the AES-CMAC of a text id (RFC 4493, section 2.4), and leaves all 128 bits in the
// parser's buffer.
func (p *Parser) mac(text []byte) uint64 {
	x, s := &p.buffer, p.scheme
	*x = [aes.BlockSize]byte{}
	for len(text) > aes.BlockSize {
		subtle.XORBytes(x[:], x[:], text[:aes.BlockSize])
		s.block.Encrypt(x[:], x[:])
		text = text[aes.BlockSize:]
	}
	last := &s.macs.whole
	if len(text) < aes.BlockSize {
		last = &s.macs.padded
		x[len(text)] ^= 0x80
	}
	subtle.XORBytes(x[:], x[:], text)
	subtle.XORBytes(x[:], x[:], last[:])
	s.block.Encrypt(x[:], x[:])
	return binary.BigEndian.Uint64(x[:])
}
