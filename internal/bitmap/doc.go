// Package bitmap encodes and decodes sets of 32-bit ids in the portable roaring format
// (https://github.com/RoaringBitmap/RoaringFormatSpec), and computes intersections, unions and counts of such sets.
// Package bitmap does not depend on package segments.
//
// # Vocabulary
//
// A container holds those ids of a bitmap that have equal upper 16 bits. The key of a container is these upper 16 bits.
// The roaring format stores a container in one of three forms: an array, a bitmap or runs. An array contains the lower
// 16 bits of each id, a bitmap has 65,536 bits, and runs are ranges of consecutive ids. For computations, package
// bitmap decodes a container to "words": a bitset of the container's ids in 1,024 words of 64 bits. All set operations
// use words. A block is the range of 65,536 ids that one container can hold.
//
// # Reading
//
// Read checks the order, the bounds and the number of ids in every container, and the offset of every container. Read
// also checks that no byte follows the last container. Read takes time that is linear in the number of bytes. Read
// replaces the method Validate of the roaring library, because Validate compares each run of a container with every
// other run. An attacker's bitmap with 2,047 runs in each of its 65,536 containers keeps Validate busy for minutes. A
// fuzz test checks that the library accepts every bitmap that Read accepts, and that the library decodes the same ids
// as Read.
//
// # Writing
//
// Package bitmap has one encoder, which stores every container in its smallest form. Equal sets of ids therefore always
// have equal encoded bytes. The encoded bytes also equal the bytes that the roaring libraries write after RunOptimize.
// A Set collects ids in any order from several goroutines, and encodes the ids on all CPU cores. AppendSorted encodes
// ascending ids without building a Set.
//
// # CodeMap: looking up many bitmaps at once
//
// A search for an id in several bitmaps, one after the other, costs a binary search and an unpredictable branch per
// bitmap. A CodeMap instead maps each id to a code: the index of the first bitmap that holds the id, plus 1. A CodeMap
// consists of blocks of 65,536 ids:
//
//   - A uniform block is a block in which all ids have the same code, or in which no id has a code. A uniform block
//     takes only its 8 bytes in the table of blocks.
//   - A block with many ids is bit-sliced. With n bitmaps, the code of an id has k = ceil(log2(n+1)) bits. In a
//     bit-sliced block, k adjacent 64-bit words hold the codes of 64 neighbouring ids. A lookup of an id in a
//     bit-sliced block usually reads one cache line, and rarely two. A bit-sliced block takes k × 8 KiB, independent of
//     its content.
//   - A block with up to 8,192 ids is sparse if the sparse form is smaller than the bit-sliced form. A sparse block has
//     256 pages, each for a range of 256 ids. The sparse block stores the start of each page, then the low byte and the
//     code of each id. A sparse block takes 514 bytes plus 2 bytes per id. A lookup in a sparse block reads about 16
//     entries.
//
// NewCodeMap reads the containers of the bitmaps once, on all CPU cores. A CodeMap of 4 bitmaps with 270 million ids
// takes 101 MB if the ids have no gaps and each id is in a random bitmap. The 4 bitmaps take 135 MB. If each bitmap is
// a contiguous range, the CodeMap takes 0.1 MB. If the ids are scattered over all 32-bit numbers, the CodeMap takes 558
// MB. The following command measures the lookup times of a CodeMap and of the roaring library's Contains:
//
//	go test -run '^$' -bench 'Lookup|Contains|Snapshot|Start' ./internal/segments/
//
// The environment variable FACTOR=10 reduces the number of users to a tenth; docs/benchmarks.md lists results.
//
// # Contains and Mark: looking up one set
//
// The methods Contains and Mark search a Bitmap in its encoded form. The encoded form of a Bitmap takes 2 bytes per id
// in array containers, 1 bit per number in bitmap containers, and 64 bytes per container. If the container keys of a
// Bitmap are close together, a table maps each key to the position of its container in the encoded bytes. In a bitmap
// container, a lookup reads one byte. In an array container, a lookup estimates the position of an id from the id's
// value in two steps. The lookup then compares 32 neighbouring elements, four at a time. If the ids are spread
// unevenly, the lookup continues with a binary search in the array container. In a run container, a lookup uses a
// binary search. The search for ids in a Bitmap has no branch that depends on the result of a lookup. The processor can
// therefore load the memory of later lookups in advance. If all data is in a processor cache, the lookup of a user
// takes about 3 ns in bitmap containers, and 11 to 15 ns in array containers. These times are for lookups of 10,000
// users in one call. If the data exceeds the cache, memory access determines the time:
//
//	go test -run '^$' -bench Contains ./internal/bitmap/
//
// # Files
//
// The file bitmap.go defines the checked Bitmap; read.go and container.go decode; words.go and encode.go encode. The
// file append.go encodes ascending ids; set.go and writer.go collect ids; contains.go looks up ids in one bitmap. The
// file algebra.go computes set operations block by block; overlap.go counts common ids; codemap.go looks up codes;
// codemapfill.go builds a CodeMap.
//
// # Not here
//
// Package bitmap supports neither 64-bit ids nor changes to a bitmap in place.
package bitmap
