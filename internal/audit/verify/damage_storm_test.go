//go:build storms

package verify_test

import "testing"

func TestEachOfManyBytesThatIsAnotherOneIsFound(t *testing.T) {
	t.Parallel()
	aByteThatIsAnotherOneIsFound(t, 110)
}
