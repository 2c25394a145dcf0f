//go:build storms

package segments_test

import "testing"

func TestNoneOfAllBitsOfTheDocumentsCanChange(t *testing.T) {
	t.Parallel()
	noBitOfTheDocumentsCanChange(t, func(int) []int { return []int{0, 1, 2, 3, 4, 5, 6, 7} })
}
