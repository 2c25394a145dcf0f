package audience

// maxDistance is the maximum edit distance, in bytes, between a mistyped name and a suggestion.
const maxDistance = 3

// Nearest returns the candidate in the slice "names" whose edit distance to the mistyped name is the smallest. If the
// distance of every candidate is above maxDistance, or above half the length of the mistyped name, Nearest returns "".
func Nearest(name string, names []string) (found string) {
	least := min(maxDistance, len(name)/2) + 1
	for _, candidate := range names {
		if d := distance(name, candidate, least); d < least {
			found, least = candidate, d
		}
	}
	return found
}

// The function "distance" returns the Levenshtein distance between the texts a and b in bytes
// (https://en.wikipedia.org/wiki/Levenshtein_distance). If the distance is the argument "limit" or more, the function
// "distance" returns the limit.
func distance(a, b string, limit int) int {
	if max(len(a)-len(b), len(b)-len(a)) >= limit {
		return limit
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0] // the value in the previous row, one column to the left
		row[0] = i + 1
		for j := range len(b) {
			replaced := before
			if a[i] != b[j] {
				replaced++
			}
			before = row[j+1]
			row[j+1] = min(replaced, before+1, row[j]+1)
		}
	}
	return min(row[len(b)], limit)
}
