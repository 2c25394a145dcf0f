// Package history tells of the generations at a source: what there are, and what
// changed between two. It reads the source alone, beside the refresher, for people who
// look; nothing that decides waits for it.
//
// What it has read it keeps for a while: the list for ListAge, and the last comparisons
// for good, as a generation never changes. Two generations are compared user by user
// while their bitmaps together are no larger than MostBytes; of larger ones the sizes
// alone are told, which stand in the manifests.
package history
