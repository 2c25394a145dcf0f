// Package yamltree reads the YAML files that people write for capper and segmentbuild, with limited memory and time.
//
// Package yamltree walks through the nodes of a document, and does not use the reflection decoder of the YAML library.
// The decoder of the YAML library would stop at the first error, round 3.7 to 3, and keep the last of two equal keys. A
// caller begins with the function Root. The method Value.Object reads a mapping with known keys, and a Field for each
// key, such as Within(&n, 1, 9). If a YAML value breaks a rule, package yamltree records an error with line, column and
// path, and continues. The method Value.Faults returns all errors that package yamltree has recorded. The function
// Parse returns the tree of the YAML library, for callers that walk through the nodes themselves.
//
// The YAML library parses recursively, stores a path for each level, and copies the text around an error. In the YAML
// library, 200 kB of brackets needed more than 24 GB of memory, and 60,000 keys in one mapping take ten seconds. Before
// parsing a text, package yamltree checks that each of the following quantities is below a limit:
//
//	size      1 MiB of UTF-8
//	marks     characters that can begin a token, before the library sees anything
//	tokens    from the library's scanner, which is linear in them
//	depth     nesting of collections, keys and other prefixes
//	spelled   nodes of the tree after every alias is expanded
//
// A configuration with 255 segments of 8 limits each uses a third of the allowed tokens and a depth of 6.
package yamltree
