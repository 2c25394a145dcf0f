// Package build makes segments and sets of raw ids: a Plan, from flags or a build file, says
// which inputs and set operations make which segment; Run reads the inputs,
// applies the operations, finds every overlap and resolves them on request.
//
// A set operation refers to other segments and sets as they are before overlaps
// are resolved, so "everyone minus active" does not depend on precedence.
//
// Sets are ingredients, or are published beside the segments; those of a table with the
// names of sets are published too, behind the others by name, for it is the rows that
// name them. They are made after the segments, in the same way, and overlap with everything.
//
// Segments are made one after the other, each with all cores: one set at a time
// is in memory beside the bitmaps that are done, and the rows of tables, which are
// one set for each segment.
package build
