//go:build race

package redisstore

// These constants are the numbers of random histories under the race detector, which makes everything slow.
const (
	longHistories  = 8
	placeHistories = 100
	judgeRounds    = 6 // of 100 cases each; a slip in the script's shortcuts takes about a thousand to show
)
