//go:build !race

package redisstore

// How many random histories scripts are compared with the domain on.
const (
	longHistories  = 48
	placeHistories = 600
	judgeRounds    = 15 // of 100 cases each; a slip in the script's shortcuts takes about a thousand to show
)
