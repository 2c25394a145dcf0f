package storetest

import (
	"testing"
	"time"

	"capper/internal/capping"
)

// Open opens the store under test for one test case, and closes the store through t.Cleanup. The store must read the
// times of sends from the function "clock". The clock of the suite starts at the present time and never moves back.
type Open func(t *testing.T, clock func() time.Time) capping.Store

// The function Run runs all test cases of the suite in parallel, and returns after the last case.
func Run(t *testing.T, open func(t *testing.T, clock func() time.Time) capping.Store) {
	t.Run("store", func(t *testing.T) {
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				c.run(newFixture(t, open))
			})
		}
	})
}

var cases = []struct {
	name string
	run  func(f *fixture)
}{
	{"a rolling window is half-open to the millisecond", rollingWindow},
	{"daily and weekly are judged together", dailyAndWeekly},
	{"a denial records nothing", denialRecordsNothing},
	{"the denial names the limit that frees a slot last", lastLimitNamed},
	{"retry_at is exact", freesAtExact},
	{"the same message id counts once", sameMessageOnce},
	{"a send is a message of a namespace on a channel", identities},
	{"messages of one millisecond all count", sameMillisecond},
	{"a message id is a new send after retention", replayEndsWithRetention},
	{"limits over channels", channels},
	{"calendar limits", calendar},
	{"a month of the calendar is kept whole", calendarMonth},
	{"shadow limits deny nobody", shadowLimits},
	{"a shadow limit of max 0 marks everybody", shadowMaxZero},
	{"a preview tells what shadow limits say", shadowPreview},
	{"shadow limits over channels", shadowChannels},
	{"each group has its own shadow limits", shadowGroups},
	{"shadow limits at their bound", shadowBound},
	{"no limit denies nobody", uncapped},
	{"max 0 denies always", maxZero},
	{"exempt sends are recorded", exempt},
	{"each group has its own limits", groups},
	{"preview writes nothing", preview},
	{"preview as of a later instant", previewAt},
	{"release gives the slot back", release},
	{"release of many users", releaseMany},
	{"release of one channel and of one namespace", releaseIdentity},
	{"nothing begins for a caller who has gone", callerWhoHasGone},
	{"erase", erase},
	{"what is recorded can be asked for", presence},
	{"a full log tells that it may have forgotten", presenceInFullLog},
	{"logs are read back", readBack},
	{"message ids are remembered", messages},
	{"logs are bounded by channel", logBound},
	{"expired sends leave the log", expiredLeave},
	{"neighbouring users are independent", neighbours},
	{"users 0 and 4294967295", extremeUsers},
	{"sends of elsewhere count from their own times on", mergedCount},
	{"sends of elsewhere are those of their messages", mergedReplays},
	{"merged logs are bounded in time and number", mergedBounds},
	{"long logs are merged", mergedLong},
	{"messages of merged logs are remembered", mergedMessages},
	{"a malformed merge is refused and harms nothing", malformedMerge},
	{"merges beside calls that decide", mergesBesideCalls},
	{"an empty batch", emptyBatch},
	{"a malformed batch is refused and harms nothing", malformedBatch},
	{"a malformed release is refused and harms nothing", malformedRelease},
	{"a user who is given twice is recorded once", userTwice},
	{"the clock tolerance is one", clockTolerance},
	{"100,000 users", largeBatch},
	{"concurrent messages never exceed max", concurrentMessages},
	{"concurrent calls of one message record once", concurrentSameMessage},
	{"a slot is a lock", slotIsALock},
	{"a passed deadline leaves all unavailable", deadlinePassed},
	{"health", health},
	{"random histories agree with the naive model", randomHistories},
}
