package pacingtest

import (
	"math/rand/v2"
	"testing"
	"time"

	"capper/internal/pacing"
	"capper/internal/testkit"
)

// Open opens the store under test for one test case, with a running clock, and closes the store through t.Cleanup.
type Open func(t *testing.T) pacing.Store

// The function Run runs all test cases of the package in parallel on stores from open. Run returns when all cases have
// ended.
func Run(t *testing.T, open Open) {
	t.Run("pacing", func(t *testing.T) {
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				f := newFixture(t, open(t), time.Now)
				c.run(f)
				f.judge()
			})
		}
	})
}

// RunOnClock sends random sequences of requests to a store whose clock the test sets forward and back.
func RunOnClock(t *testing.T, open func(t *testing.T, clock func() time.Time) pacing.Store) {
	clock := testkit.NewClock()
	f := newFixture(t, open(t, clock.Now), clock.Now)
	runHistories(f, rand.Uint64(), func(rng *rand.Rand) { clock.Advance(jumps[rng.IntN(len(jumps))]) })
	f.judge()
}

var jumps = []time.Duration{
	0, time.Microsecond, time.Millisecond, 300 * time.Millisecond, 2 * time.Second, time.Minute, time.Hour,
	-time.Microsecond, -3 * time.Second,
}

var cases = []struct {
	name string
	run  func(f *fixture)
}{
	{"a limit", limit},
	{"a rate", rate},
	{"a rate that is not whole microseconds", oddRate},
	{"limits and a rate together", limitsAndRate},
	{"slots are free again when they are a window old", windowsPass},
	{"waits end where they were to", waits},
	{"several targets grant what all of them do", severalTargets},
	{"a slow target leaves room at a fast one", sharedTarget},
	{"a run of slots ends where slots stand ahead", sharedRun},
	{"a log for each message", perMessage},
	{"0 permits take nothing", look},
	{"what is refused is not recorded", refused},
	{"a request again has the same slots", sameRequest},
	{"a request with another ask is refused", reusedRequest},
	{"a request that got nothing asks anew", emptyRequest},
	{"a request that goes on is remembered with nothing, too", continuedRequest},
	{"a request that was ended gets nothing", endedRequest},
	{"a late step of a repeated call takes nothing", lateStep},
	{"a call that waits for one pacer closes no other", closed},
	{"permits are given back at all targets, once", givenBack},
	{"later permits get slots that were given back before a queue of bursts", givenBackBeforeBursts},
	{"later permits get the room of those that were given back", returnedRoom},
	{"a forgotten log gives nothing back", returnedAndForgotten},
	{"a call of several steps gives back all of them", returnedParts},
	{"concurrent calls take and give back", returnedConcurrently},
	{"leases end", leasesEnd},
	{"the permits of a silent sender go back", leasesReturn},
	{"leases end while their calls are repeated", leasesRace},
	{"shares keep their parts", sharesKept},
	{"shares keep all", sharesOfAll},
	{"a call of a share is repeated", sharesRepeated},
	{"permits of shares are given back", sharesReturned},
	{"a longer wait makes room for a shorter one", reachKept},
	{"forget", forget},
	{"a malformed ask is refused and harms nothing", malformed},
	{"changed limits judge what is recorded", changedLimits},
	{"100,000 permits", many},
	{"a grant ends after so many steps, and says so", mostSteps},
	{"a log at its bound", fullLog},
	{"the greatest and the least limits", extremes},
	{"concurrent calls never exceed a limit", concurrent},
	{"concurrent calls for targets in any order", concurrentOrders},
	{"concurrent calls of one request take once", concurrentRequest},
	{"a passed deadline takes nothing", deadlinePassed},
	{"random histories agree with the model", histories},
}
