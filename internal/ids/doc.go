// Package ids turns the ids that a company gives its users into 64-bit images.
//
// # Words
//
// An id is the text by which a company knows a user. A kind says which texts are ids: dense, uint64, uuid or text.
// An image is the 64-bit value under which stores and audits keep a user for ever. A key is 16 random bytes that
// belong to one deployment; other keys give other images. A scheme is a kind with a key.
//
// # Why images
//
// Nobody hands out images, so none is lost, rolled back, or given to two users. A user who is in no file has an image
// at once. Images of all kinds but dense are spread evenly over the 64 bits, so that stores may use any of the bits
// for a partition or a bucket. The key keeps strangers from choosing ids that share an image or a bucket. The key is
// no secret that an operator must keep, and without the key no log is found again.
//
// # Ids and their spellings
//
// Canonical returns the one spelling that capper answers with. Two spellings of one user have one canonical text.
//
//   - dense: the decimal digits of 0 to 4294967295 (2^32-1), without a sign and without leading zeros.
//   - uint64: the decimal digits of 0 to 18446744073709551615 (2^64-1), without a sign and without leading zeros.
//     "007" is rejected, because a source that writes "007" may also know a user "7", who would be the same number.
//     Such ids are of the kind text.
//   - uuid: 32 hexadecimal digits in upper or lower case, with four dashes (8-4-4-4-12) or without dashes, bare, in
//     braces, or after "urn:uuid:". Every version is an id, and so are the nil UUID and the max UUID (RFC 9562).
//     The canonical text has lower case and dashes.
//   - text: 1 to 256 bytes, compared byte by byte: "A" and "a" are two users, and so are "é" as one character and as
//     two. A text id must be valid UTF-8, because answers are JSON, which holds nothing else. A text id must not hold
//     control characters (U+0000 to U+001F, U+007F), because lists hold one id a line and a line end that came along
//     would make two users of one. A text id must not hold U+FFFD, which decoders write in place of bytes that are
//     not UTF-8: different users would become one.
//
// # Images, fixed for ever
//
// Stores keep images, so these formulas never change; TestImagesNeverChange holds them. All integers are big endian.
//
//   - dense: the id itself. The key does not count.
//   - uint64: mix(mix(id ^ k0) ^ k1) ^ k2, where k0, k1 and k2 are the first three 64-bit words of
//     SHA-256("capper ids uint64" || key). The function mix is variant 13 of David Stafford's 64-bit mixers, the
//     finalizer of SplitMix64: x ^= x>>30; x *= 0xbf58476d1ce4e5b9; x ^= x>>27; x *= 0x94d049bb133111eb; x ^= x>>31.
//     Keys between fixed permutations are the construction of Even and Mansour. Each step has an inverse, so two ids
//     never share an image, and the image alone leads back to the id. The formula is no cipher.
//   - uuid: the upper 64 bits of AES-128(key, the 16 bytes). The lower 64 bits are the rest: image and rest together
//     lead back to the id.
//   - text: the upper 64 bits of AES-CMAC(key, the bytes). There is no way back.
//
// Two of n users of the kinds uuid and text share an image with a chance of n²/2^65: 0.2 % for 270 million users.
//
// The check of a scheme is the first 4 bytes of SHA-256("capper ids check" || name of the kind || 0x00 || key) as 8
// hexadecimal digits. Stores and manifests keep the check, and refuse a scheme with another one.
//
// # Packed ids
//
// A packed id has 16 bytes (uuid) or 8 bytes (uint64), big endian. The kinds dense and text have no packed form.
//
// # Sources
//
//   - AES: FIPS 197. AES-CMAC: RFC 4493. UUIDs: RFC 9562. "urn:" in any case: RFC 8141, section 3.1.
//   - S. Even, Y. Mansour: A Construction of a Cipher from a Single Pseudorandom Permutation, J. Cryptology 10 (1997).
//   - D. Stafford: Better Bit Mixing, https://zimbry.blogspot.com/2011/09/better-bit-mixing-improving-on.html
//   - G. Steele, D. Lea, C. Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014;
//     https://prng.di.unimi.it/splitmix64.c
package ids
