//go:build !race

package whatif

// manyHistories is how many random histories each test goes through.
const manyHistories = 100
