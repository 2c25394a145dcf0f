package audience

// maxDistance is how many letters may be missing, too many or others in what was meant.
const maxDistance = 3

// Nearest is the first of the names that differs least from name, "" when all are
// further than maxDistance away or share less than half of it.
func Nearest(name string, names []string) (found string) {
	least := min(maxDistance, len(name)/2) + 1
	for _, candidate := range names {
		if d := distance(name, candidate, least); d < least {
			found, least = candidate, d
		}
	}
	return found
}

// distance is how many bytes have to be put in, left out or replaced to make b of a
// (https://en.wikipedia.org/wiki/Levenshtein_distance), or limit where it is at least that.
func distance(a, b string, limit int) int {
	if max(len(a)-len(b), len(b)-len(a)) >= limit {
		return limit
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0] // of the row above, one to the left
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
