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

// The function Torture returns the rounds of a test that injects random faults for the given number of minutes, and a
// random generator for the test. The environment variables CAPPER_TORTURE_MINUTES and CAPPER_TORTURE_SEED override the
// duration and the random seed.
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
	t.Logf("torture of %.2g minutes, seed %d", minutes, seed) // first, so that a killed test has logged its seed
	return rand.New(rand.NewPCG(seed, 0)), func(yield func(int) bool) {
		end := time.Now().Add(time.Duration(minutes * float64(time.Minute)))
		for round := 1; round == 1 || time.Now().Before(end); round++ {
			if !yield(round) {
				return
			}
		}
	}
}

// TortureAlone reports whether the environment sets the duration of the torture test. If the environment sets the
// duration, no other tests run beside the torture test.
func TortureAlone() bool { return os.Getenv("CAPPER_TORTURE_MINUTES") != "" }

// The type Faults holds, by name, the number of faults that a torture test has injected.
type Faults map[string]int

// String returns one line for each name of a fault, and one line with the total number of faults.
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
