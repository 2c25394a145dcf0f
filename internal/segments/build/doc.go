// Package build makes segments of raw ids: a Plan, from flags or a build file, says
// which inputs and set operations make which segment; Run reads the inputs,
// applies the operations, finds every overlap and resolves them on request.
//
// A set operation refers to other segments and sets as they are before overlaps
// are resolved, so "everyone minus active" does not depend on precedence.
//
// Segments are made one after the other, each with all cores: at most one bitset
// is in memory beside the bitmaps that are done, the operand of an intersection
// and the rows of tables aside, which hold one bitset for each segment.
package build
