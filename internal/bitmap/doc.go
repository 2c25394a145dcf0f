// Package bitmap encodes and decodes sets of 32-bit ids in the portable roaring format
// (https://github.com/RoaringBitmap/RoaringFormatSpec), and computes with these sets. The package
// knows nothing about segments.
//
// # Vocabulary
//
// A container holds 65,536 neighbouring ids with the same upper half, which is the container's key.
// A container is stored in one of three forms: an array of the lower halves, a bitmap of 65,536
// bits, or runs. The words of a container are its ids as 1,024 words of 64 bits; all set arithmetic
// uses words.
//
// # Reading
//
// Read checks everything: the order, the bounds and the count of every container, the offset of
// every container, and that no byte follows the end. Its time is linear in the size of the bytes.
// Read replaces the roaring library's Validate, which compares each run of a container with every
// other run: a crafted bitmap with 2,047 runs in each of its 65,536 containers keeps Validate busy
// for minutes. A fuzz test proves that the library accepts every bitmap that passes Read, and reads
// the same set.
//
// # Writing
//
// The package has one encoder, which stores every container in its smallest form. The same ids
// therefore always produce the same bytes, and these are the bytes that RunOptimize produces in the
// roaring libraries. A Set collects ids in any order, from several goroutines, and encodes them on
// all cores. AppendSorted encodes ascending ids without building a set.
//
// # CodeMap: looking up many bitmaps at once
//
// A query to each bitmap in turn costs a binary search and an unpredictable branch per bitmap. A
// CodeMap instead holds one map from id to code, in blocks of 65,536 ids:
//
//   - A uniform block, in which all ids have the same code or none has a code, takes only its 8 bytes
//     in the table of blocks.
//   - A block with many ids is bit-sliced. With n bitmaps a code has k = ceil(log2(n+1)) bits, and k
//     adjacent words hold the codes of 64 neighbouring ids. A lookup reads one cache line, rarely
//     two. A block takes k × 8 KiB, independent of its content.
//   - A block with few ids (up to 8,192, and only if this form is smaller) consists of 256 pages of 256
//     ids: the start of each page, then the low byte and the code of each id. The block takes 514
//     bytes plus 2 per id; a lookup reads about 16 entries.
//
// Building a CodeMap takes one pass over the containers on all cores. Sizes for 4 bitmaps and 270
// million ids: 101 MB for a full id space with random bitmaps (which take 135 MB themselves), 0.1 MB
// for contiguous ranges, 558 MB for ids that are scattered over all 32-bit numbers. This command
// measures the times of a CodeMap and of the library's Contains:
//
//	go test -run '^$' -bench 'Lookup|Contains|Snapshot|Start' ./internal/segments/
//
// FACTOR=10 reduces the users to a tenth; docs/benchmarks.md lists results.
//
// # Contains and Mark: looking up one set
//
// A Bitmap is searched in its stored form: 2 bytes per id in arrays, 1 bit per id in bitmaps, plus
// 64 bytes per container. A table maps a key to its container. In a bitmap container, a lookup reads
// one byte. In an array container, two guesses from the id's value find 32 neighbours, which are
// compared four at a time; for unevenly spread ids a binary search follows. Runs use a binary search.
// No branch depends on a result, so the processor loads the memory for the next ids in advance. With
// all data in a cache, a user in a list of 10,000 costs about 3 ns in bitmaps and 11 to 15 ns in
// arrays; with larger data, memory determines the time:
//
//	go test -run '^$' -bench Contains ./internal/bitmap/
//
// # Files
//
// bitmap holds the checked bitmap; read and container decode; words and encode encode; append encodes
// ascending ids; set and writer collect ids; contains looks up ids in one bitmap; algebra computes
// block by block; overlap counts common ids; codemap looks up codes; codemapfill builds a CodeMap.
//
// # Not here
//
// 64-bit ids, and changes to a bitmap in place.
package bitmap
