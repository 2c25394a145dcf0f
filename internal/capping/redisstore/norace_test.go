//go:build !race

package redisstore

// These constants are the numbers of random histories in the comparisons of scripts and domain.
const (
	longHistories  = 48
	placeHistories = 600
	judgeRounds    = 15 // of 100 cases each; a slip in the script's shortcuts takes about a thousand to show
)
