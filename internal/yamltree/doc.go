// Package yamltree reads the YAML files that people write for capper and segmentbuild, in bounded memory and time.
//
// The package walks through a document by hand instead of decoding it by reflection. A decoder stops at the first
// fault, rounds 3.7 to 3 and keeps the last of two equal keys. A walk starts at Root. Value.Object reads a mapping of
// known keys with a Field for each, such as Within(&n, 1, 9). A wrong value is recorded with its line, column and
// path, and the walk continues. Value.Faults returns all faults. Parse returns the library's tree to callers with
// another kind of walk.
//
// The YAML library recurses, keeps a path for each level, and copies the text around an error. 200 kB of brackets
// exhausted a machine with 24 GB of memory, and 60,000 keys in one mapping take ten seconds. So the package measures
// a text before it parses it:
//
//	size      1 MiB of UTF-8
//	marks     characters that can begin a token, before the library sees anything
//	tokens    from the library's scanner, which is linear in them
//	depth     nesting of collections, keys and other prefixes
//	spelled   nodes of the tree after every alias is expanded
//
// A configuration with 255 segments of 8 limits each uses a third of the allowed tokens and a depth of 6.
package yamltree
