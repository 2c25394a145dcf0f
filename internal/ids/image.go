package ids

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
)

// A mixer maps uint64 ids to images (64-bit numbers that stand for ids) with the keyed bijection in the package
// comment.
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

// The method "back" computes a uint64 id from its image.
func (m *mixer) back(image uint64) uint64 { return unmix(unmix(image^m.k2)^m.k1) ^ m.k0 }

// factor1 and factor2 are the factors in the function mix. inverse1 and inverse2 are the inverses of factor1 and
// factor2 modulo 2^64.
const (
	factor1, inverse1 = 0xbf58476d1ce4e5b9, 0x96de1b173f119089
	factor2, inverse2 = 0x94d049bb133111eb, 0x319642b2d24d8ec3
)

// The function "mix" is variant 13 of David Stafford's mixers, and a bijection. If one bit of x changes, each bit of
// the result changes with a probability of about one half.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * factor1
	x = (x ^ x>>27) * factor2
	return x ^ x>>31
}

// The function "unmix" is the inverse function of mix. To invert an XOR with a shift to the right, "unmix" applies
// multiples of this shift until no bit is left.
func unmix(x uint64) uint64 {
	x = (x ^ x>>31 ^ x>>62) * inverse2
	x = (x ^ x>>27 ^ x>>54) * inverse1
	return x ^ x>>30 ^ x>>60
}

// The type "subkeys" contains the subkeys K1 (whole) and K2 (padded) of RFC 4493, section 2.3.
type subkeys struct{ whole, padded [aes.BlockSize]byte }

func newSubkeys(block cipher.Block) (keys subkeys) {
	var zero [aes.BlockSize]byte
	block.Encrypt(keys.whole[:], zero[:])
	keys.whole = doubled(keys.whole)
	keys.padded = doubled(keys.whole)
	return keys
}

// The function "doubled" returns x·2 in the finite field with 2^128 elements.
func doubled(x [aes.BlockSize]byte) (twice [aes.BlockSize]byte) {
	const reducer = 0x87
	high, low := binary.BigEndian.Uint64(x[:8]), binary.BigEndian.Uint64(x[8:])
	binary.BigEndian.PutUint64(twice[:8], high<<1|low>>63)
	binary.BigEndian.PutUint64(twice[8:], low<<1^high>>63*reducer)
	return twice
}

// The method "mac" returns the upper 64 bits of the AES-CMAC of a text id (RFC 4493, section 2.4). All 128 bits remain
// in the parser's buffer.
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
