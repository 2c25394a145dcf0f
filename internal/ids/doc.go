// Package ids converts the user ids of a company into images: 64-bit numbers by which capper stores users.
//
// # Words
//
// An id is the text by which a company identifies a user. The kind of a deployment's ids is "dense", "uint64", "uuid"
// or "text". The kind determines the set of valid ids. An image is the 64-bit number by which stores and audit files
// identify a user permanently. A hash key consists of 16 random bytes that belong to one deployment. With different
// hash keys, the same id has different images. A scheme is a kind of ids together with a hash key.
//
// # Why images
//
// Package ids computes images from ids, without a counter. A counter that gives each id a number could be lost or
// rolled back, or could give one number to two users. Even a user who is in no segment file has an image, because the
// image is computed only from the user's id and the key. Images of all kinds of ids except "dense" are spread evenly
// over all 64-bit numbers. Stores may therefore use any bits of an image to choose a partition or a bucket of users.
// Without the hash key, an outsider cannot choose ids that share an image or a bucket of users. The hash key is not a
// password, but an operator must not lose it. Without the hash key, a store cannot find the recorded sends of any user.
//
// # Ids and their spellings
//
// The method Canonical returns the only spelling of an id that capper uses in responses. All spellings of one user's id
// have the same canonical text.
//
//   - dense: the decimal digits of 0 to 4294967295 (2^32-1), without a sign and without leading zeros.
//   - uint64: the decimal digits of 0 to 18446744073709551615 (2^64-1), without a sign and without leading zeros. The
//     id "007" is rejected, because a company that writes "007" may also have a user "7", whose number would be equal.
//     Ids with leading zeros need the kind "text".
//   - uuid: 32 hexadecimal digits in upper or lower case, with four dashes (8-4-4-4-12) or without dashes. The digits
//     may have braces around them, or the prefix "urn:uuid:". UUIDs of every version are valid ids, and so are the nil
//     UUID and the max UUID (RFC 9562). The canonical text has lower case and dashes.
//   - text: 1 to 256 bytes, compared byte by byte. "A" and "a" are therefore two users. The letter "é" as one code
//     point and "é" as two code points are also two users. A text id must be valid UTF-8, because responses are JSON,
//     which allows only UTF-8. A text id must not contain control characters (U+0000 to U+001F, U+007F), because lists
//     contain one id per line. A line end within an id would split the id into two users. A text id must not contain
//     U+FFFD, because decoders replace invalid UTF-8 by U+FFFD, so that two different ids could become equal.
//
// # Images, fixed for ever
//
// Stores keep images, so the formulas for images never change; TestImagesNeverChange checks the formulas. All integers
// are big endian.
//
//   - dense: the image is the id itself. For dense ids, the hash key has no effect on the image.
//   - uint64: mix(mix(id ^ k0) ^ k1) ^ k2, where k0, k1 and k2 are the first three 64-bit words of SHA-256("capper ids
//     uint64" || key). The function "mix" is variant 13 of David Stafford's 64-bit mixers, the finalizer of SplitMix64:
//     x ^= x>>30; x *= 0xbf58476d1ce4e5b9; x ^= x>>27; x *= 0x94d049bb133111eb; x ^= x>>31. Adding keys between fixed
//     permutations is the construction of Even and Mansour. Each step of the formula for uint64 ids has an inverse. Two
//     uint64 ids therefore never share an image, and the method Back computes a uint64 id from the image alone. The
//     formula for uint64 ids is not a secure cipher.
//   - uuid: the upper 64 bits of AES-128(key, the 16 bytes). The lower 64 bits of the AES block are the rest of the id.
//     Back computes the id from the image and the rest.
//   - text: the upper 64 bits of AES-CMAC(key, the bytes). The text of an id cannot be computed from its image.
//
// If n users have ids of the kind "uuid" or "text", the probability that any two of them share an image is n²/2^65. For
// 270 million users, this probability is 0.2 %.
//
// The check (checksum) of a scheme is the first 4 bytes of SHA-256("capper ids check" || name of the kind || 0x00 ||
// key) as 8 hexadecimal digits. Stores and manifests keep this checksum, and reject a scheme with a different one.
//
// # Packed ids
//
// The packed form of an id has 16 bytes for a UUID or 8 bytes for a uint64, big endian. Ids of the kinds "dense" and
// "text" have no packed form.
//
// # Sources
//
//   - AES: FIPS 197. AES-CMAC: RFC 4493. UUIDs: RFC 9562. "urn:" in any case: RFC 8141, section 3.1.
//   - S. Even, Y. Mansour: A Construction of a Cipher from a Single Pseudorandom Permutation, J. Cryptology 10 (1997).
//   - D. Stafford: Better Bit Mixing, https://zimbry.blogspot.com/2011/09/better-bit-mixing-improving-on.html
//   - G. Steele, D. Lea, C. Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014;
//     https://prng.di.unimi.it/splitmix64.c
package ids
