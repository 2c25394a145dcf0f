// Package blast is what becomes of an audience that is asked for: whom there is still to ask, the results of
// its batches, gathered, and the files that they are written to.
package blast
