//go:build race

package redisstore

// How many random histories scripts are compared with the domain on, where the race detector makes everything slow.
const (
	longHistories  = 16
	placeHistories = 150
	judgeRounds    = 6 // of 100 cases each; a slip in the script's shortcuts takes about a thousand to show
)
