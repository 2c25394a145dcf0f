// Package yamltree reads the YAML files that people write for capper and
// segmentbuild, in bounded memory and time.
//
// A document is walked by hand rather than decoded by reflection, because a
// decoder stops at the first fault, rounds 3.7 to 3 and keeps the last of two
// equal keys. Root is where a walk begins; Value.Object reads a mapping of known
// keys by a Field for each, such as Within(&n, 1, 9). Whatever is not as it must
// be is noted with its line, column and path, and the walk goes on: Value.Faults
// are all of them. Parse gives the library's tree to those who go their own way.
//
// The library recurses, keeps a path for each level, and copies the text around
// an error: 200 kB of brackets took a machine of 24 GB down, and 60,000 keys of one
// mapping take it ten seconds. So a text is measured before it is parsed:
//
//	size      1 MiB of UTF-8
//	marks     characters that can begin a token, before the library sees anything
//	tokens    from the library's scanner, which is linear in them
//	depth     of collections, keys and other prefixes within each other
//	spelled   nodes of the tree with every alias replaced by what it stands for
//
// The configuration of 255 segments with 8 limits each has a third of the tokens
// that are allowed, and a depth of 6.
package yamltree
