// Package yamltree parses the YAML files that people write for capper and
// segmentbuild into the library's syntax tree, in bounded memory and time.
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
