// Package bitmap is the codec of the portable roaring format for 32-bit ids
// (https://github.com/RoaringBitmap/RoaringFormatSpec), and what is computed of
// bitmaps: everything about sets of ids, and nothing about segments.
//
// # Vocabulary
//
// A container is 65,536 neighbouring ids, those with the same upper half, which is
// its key. It is stored in one of three forms: an array of the lower halves, a
// bitmap of 65,536 bits, or runs. The words of a container are its ids as 1,024
// words of 64 bits: what all arithmetic is done in.
//
// # Reading
//
// Read believes no byte: every container's order, bounds and count must hold, each
// offset must be where the container is, and nothing may follow the end. It is
// linear in the size of the bytes. The library's Validate, in whose place it
// stands, compares each run of a container with every other, which a crafted bitmap
// with 2,047 runs in each of its 65,536 containers turns into minutes. A fuzz test
// holds that whatever passes here is valid for the library and means the same set.
//
// # Writing
//
// There is one encoder: the smallest form for every container, so that the same ids
// give the same bytes, which are those of RunOptimize in the roaring libraries. Of
// ids in any order a Set is filled, by several goroutines at once, and encoded on
// all cores; AppendSorted encodes ids that ascend already without a set in between.
//
// # CodeMap: what a lookup costs
//
// Asking bitmaps one after the other costs a binary search and a branch that cannot
// be predicted for each. A CodeMap instead holds one map from id to code, in blocks
// of 65,536 ids:
//
//   - A block of which all ids have the same code, or none has one, takes its 8
//     bytes in the table of blocks.
//   - A block with many ids is bit-sliced: with n bitmaps a code has k =
//     ceil(log2(n+1)) bits, and k words side by side hold the codes of 64
//     neighbouring ids. A lookup touches one cache line, seldom two. A block
//     takes k × 8 KiB, whoever is in it.
//   - A block with few ids, up to 8,192 and when that is smaller, is 256 pages of
//     256 ids: where each page begins, then the low byte and the code of each id. It
//     takes 514 bytes and 2 per id; a lookup looks at about 16.
//
// Building it takes all cores and one pass over the containers. The sizes, for 4
// bitmaps: 270 million ids that fill their space, in bitmaps at random, take 101 MB
// (the bitmaps 135 MB); in contiguous ranges 0.1 MB; scattered over all 32-bit ids
// 558 MB. The times, and roaring's Contains beside them, are measured by
//
//	go test -run '^$' -bench 'Lookup|Contains|Snapshot|Start' ./internal/segments/
//
// with FACTOR=10 for a tenth of the users; docs/benchmarks.md has figures.
//
// # Contains and Mark: what one set costs
//
// A Bitmap is searched as it is stored, 2 bytes an id in arrays and 1 bit in bitmaps,
// with 64 bytes beside it for each container. A table says where the container of a key
// is. In a bitmap one byte is read. In an array, two guesses from the id's share of the
// container find 32 neighbours, which are compared four at a time; where ids are not
// spread evenly, halving follows. Runs are halved. Nothing branches on an answer, so that
// the memory of the next ids is asked for meanwhile. With all in a cache, a user in 10,000
// costs about 3 ns in bitmaps and 11 to 15 in arrays; beyond that it is memory that counts:
//
//	go test -run '^$' -bench Contains ./internal/bitmap/
//
// # Files
//
// bitmap is the checked bitmap; read and container what is read, words and encode
// what is written, append the encoder of ids that ascend; set and writer collect
// ids; contains asks one bitmap; overlap counts what bitmaps have in common; codemap looks ids up, codemapfill
// lays them out.
//
// # Not here
//
// 64-bit ids, and changes of a bitmap in place.
package bitmap
