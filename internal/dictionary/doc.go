// Package dictionary maps images (64-bit numbers that stand for user ids) to consecutive 32-bit numbers and back. The
// number of an image is its index in the sorted list of all images of one generation of segments. For an image that is
// not in a dictionary, the dictionary returns the number Unknown.
//
// A dictionary file consists of a header, the images and an index. All integers are little-endian:
//
//	| bytes          | content                                                                      |
//	| -------------- | ---------------------------------------------------------------------------- |
//	| 8              | "capdict1": magic and version                                                |
//	| 4              | n, the number of images                                                      |
//	| 4              | b, the bits of an image that choose its row; computed from n                 |
//	| n × w          | the low 64 − b bits of each image in w = ceil((64 − b) / 8) bytes, ascending |
//	| 4 × (2^b + 1)  | for each row the number of its first image; then n                           |
//
// A row of a dictionary holds 12 to 24 images on average, or about two cache lines. A random look-up therefore misses
// the processor cache about three times. In the file, the index follows the images, so that a Writer can stream the
// images and keep only the index in memory. In a dictionary of 270 million images, each image takes 5.25 bytes. A
// dictionary file has no checksum, because the manifest of the segments contains the file's SHA-256.
//
// A second, optional file converts numbers back to user ids. The second file is a Rests file for UUIDs, and a Texts
// file for text ids (see texts.go).
package dictionary
