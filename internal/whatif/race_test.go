//go:build race

package whatif

// manyHistories is how many random histories each test goes through, where the race detector makes everything slow.
const manyHistories = 50
