// Package dictionary maps 64-bit images of user ids to numbers and back. The number of an image is the image's rank
// among the images of one generation. An image that a dictionary does not contain has the number Unknown.
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
// A row holds 12 to 24 images on average, about two cache lines, so a random look-up misses the cache about three
// times. The index follows the images, so that a Writer can stream the file and keep only the index in memory. In a
// dictionary of 270 million images, each image takes 5.25 bytes. A dictionary file has no checksum, because the segment
// manifest contains the file's SHA-256.
//
// A second, optional file converts numbers back to ids. The file is a Rests file for UUIDs, and a Texts file for text
// ids (see texts.go).
package dictionary
