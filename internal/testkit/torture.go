package testkit

import (
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Torture returns the rounds of a test that breaks random parts for a number of minutes. The environment variables
// CAPPER_TORTURE_MINUTES and CAPPER_TORTURE_SEED set the duration and the random seed.
func Torture(t testing.TB, minutes float64) (rng *rand.Rand, rounds iter.Seq[int]) {
	t.Helper()
	seed := uint64(time.Now().UnixNano() % 1_000_000)
	var err error
	if text := os.Getenv("CAPPER_TORTURE_MINUTES"); text != "" {
		minutes, err = strconv.ParseFloat(text, 64)
	}
	if text := os.Getenv("CAPPER_TORTURE_SEED"); text != "" && err == nil {
		seed, err = strconv.ParseUint(text, 10, 64)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("torture of %.2g minutes, seed %d", minutes, seed) // at once: also of a run that is killed
	return rand.New(rand.NewPCG(seed, 0)), func(yield func(int) bool) {
		end := time.Now().Add(time.Duration(minutes * float64(time.Minute)))
		for round := 1; round == 1 || time.Now().Before(end); round++ {
			if !yield(round) {
				return
			}
		}
	}
}

// Faults counts the faults of a torture test by name.
type Faults map[string]int

// String returns a line for each fault, and a line with the total.
func (f Faults) String() string {
	var b strings.Builder
	total := 0
	for _, name := range slices.Sorted(maps.Keys(f)) {
		total += f[name]
		fmt.Fprintf(&b, "%6d  %s\n", f[name], name)
	}
	fmt.Fprintf(&b, "%6d  faults\n", total)
	return b.String()
}
