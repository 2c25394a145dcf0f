// Package bitmap encodes and decodes sets of 32-bit ids in the portable roaring format
// (https://github.com/RoaringBitmap/RoaringFormatSpec), and computes intersections, unions and counts of such sets. The
// package does not depend on segments.
//
// # Vocabulary
//
// A container holds the ids of 65,536 neighbouring numbers that have equal upper 16 bits. These upper 16 bits are the
// container's key. A container is stored in one of three forms: an array of the lower 16 bits of each id, a bitmap of
// 65,536 bits, or runs. The words of a container are its ids as a bitset of 1,024 words of 64 bits. All set operations
// use words. A block is the range of 65,536 ids that one container can hold.
//
// # Reading
//
// Read checks the order, the bounds and the number of ids in every container, and the offset of every container. Read
// also checks that no byte follows the last container. The time of Read is linear in the number of bytes. Read replaces
// the roaring library's Validate, which compares each run of a container with every other run. A crafted bitmap with
// 2,047 runs in each of its 65,536 containers keeps Validate busy for minutes. A fuzz test proves that the library
// accepts every bitmap that passes Read, and that the library decodes the ids that Read decodes.
//
// # Writing
//
// The package has one encoder, which stores every container in its smallest form. Equal sets of ids therefore always
// have equal encoded bytes. The encoded bytes also equal the bytes that RunOptimize produces in the roaring libraries.
// A Set collects ids in any order, from several goroutines, and encodes them on all cores. AppendSorted encodes
// ascending ids without building a set.
//
// # CodeMap: looking up many bitmaps at once
//
// Searching each bitmap in turn costs a binary search and an unpredictable branch per bitmap. A CodeMap instead holds
// one map from id to code, in blocks of 65,536 ids:
//
//   - A uniform block is a block in which all ids have the same code, or in which no id has a code. A uniform block
//     takes only its 8 bytes in the table of blocks.
//   - A block with many ids is bit-sliced. With n bitmaps a code has k = ceil(log2(n+1)) bits, and k adjacent words
//     hold the codes of 64 neighbouring ids. A lookup usually reads one cache line, and rarely two. A bit-sliced block
//     takes k × 8 KiB, independent of its content.
//   - A block with up to 8,192 ids is sparse if the sparse form is smaller than the bit-sliced form. A sparse block
//     consists of 256 pages of 256 ids: the start of each page, then the low byte and the code of each id. A sparse
//     block takes 514 bytes plus 2 bytes per id. A lookup in a sparse block reads about 16 entries.
//
// NewCodeMap reads the containers once, on all cores. A CodeMap of 4 bitmaps with 270 million random ids in a full id
// space takes 101 MB; the bitmaps take 135 MB. A CodeMap of contiguous ranges takes 0.1 MB. A CodeMap takes 558 MB if
// the ids are scattered over all 32-bit numbers. This command measures the times of a CodeMap and of the library's
// Contains:
//
//	go test -run '^$' -bench 'Lookup|Contains|Snapshot|Start' ./internal/segments/
//
// The environment variable FACTOR=10 reduces the number of users to a tenth; docs/benchmarks.md lists results.
//
// # Contains and Mark: looking up one set
//
// Contains and Mark search a Bitmap in its encoded form. The encoded form takes 2 bytes per id in arrays, 1 bit per id
// in bitmaps, and 64 bytes per container. A table maps a container key to the container. In a bitmap container, a
// lookup reads one byte. In an array container, a lookup guesses the position of an id twice from the id's value, and
// then compares 32 neighbouring elements, four at a time. For unevenly spread ids, the lookup continues with a binary
// search. In a run container, a lookup uses a binary search. No branch depends on a result, so the processor loads the
// memory for the next ids in advance. If all data is in a cache, a user in a list of 10,000 costs about 3 ns in
// bitmaps, and 11 to 15 ns in arrays. If the data exceeds the cache, memory access determines the time:
//
//	go test -run '^$' -bench Contains ./internal/bitmap/
//
// # Files
//
// bitmap holds the checked bitmap; read and container decode; words and encode encode; append encodes ascending ids;
// set and writer collect ids; contains looks up ids in one bitmap; algebra computes block by block; overlap counts
// common ids; codemap looks up codes; codemapfill builds a CodeMap.
//
// # Not here
//
// The package supports neither 64-bit ids nor changes to a bitmap in place.
package bitmap
