package terminal

import "fmt"

// Count formats a number and the words behind it. The words are "one" for the number 1, and "many" for other numbers.
func Count[N int | int64 | uint32 | uint64](n N, one, many string) string {
	if n == 1 {
		many = one
	}
	return fmt.Sprintf("%d %s", n, many)
}
