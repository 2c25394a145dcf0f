// Package dictionary maps 64-bit images of user ids to numbers and back. The number of an image is its rank among
// the images of one generation. An image that a dictionary does not contain has the number Unknown.
//
// A dictionary file consists of three parts; all integers are little-endian:
//
//	| bytes          | content                                                                      |
//	| -------------- | ---------------------------------------------------------------------------- |
//	| 8              | "capdict1": magic and version                                                |
//	| 4              | n, the number of images                                                      |
//	| 4              | b, the bits of an image that choose its row; computed from n                 |
//	| n × w          | the low 64 − b bits of each image in w = ceil((64 − b) / 8) bytes, ascending |
//	| 4 × (2^b + 1)  | for each row the number of its first image; then n                           |
//
// A row holds 12 to 24 images on average, about two cache lines, so a random look-up misses the cache about three
// times. The index follows the images so that a Writer streams the file and keeps only the index in memory.
// 270 million images take 5.25 bytes each. A file has no checksum, like a bitmap: its manifest has its SHA-256.
//
// A second, optional file leads from numbers to ids: Rests for UUIDs, Texts for texts (see texts.go).
package dictionary
