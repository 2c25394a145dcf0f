package messagestest

import (
	"testing"
	"time"

	"capper/internal/capping"
	"capper/internal/messages"
)

// Store is the store under test, which keeps both recorded sends and message counts.
type Store interface {
	capping.Store
	messages.Store
}

// An Open function opens the store under test for one test case. The store takes the times of sends from the given
// clock. The clock starts at the real time and never moves back. The Open function closes the store through t.Cleanup.
type Open func(t *testing.T, clock func() time.Time) Store

// The function Run runs all test cases of the package in parallel, on stores that the function "open" creates. Run
// returns when all cases have ended.
func Run(t *testing.T, open Open) {
	t.Run("campaigns", func(t *testing.T) {
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
	{"what is not known is none", unknown},
	{"a retry counts nothing", retry},
	{"a release counts what it gives back", release},
	{"a denial counts no send", denial},
	{"channels and namespaces are apart", identities},
	{"a preview counts nothing", preview},
	{"an erased user stays counted", erased},
	{"single calls of a message that is counted", singles},
	{"a release of what is not counted begins no campaign", releaseOfUncounted},
	{"answers are added up", answers},
	{"answers of few users begin no campaign", fewAnswers},
	{"a message of withheld users begins a campaign", withheld},
	{"activity is counted from the first user on", activity},
	{"campaigns are listed by their last call", listed},
	{"pages of every kind agree with the sorted list", paged},
	{"campaigns of which sends were brought are listed", brought},
	{"a message has a title", titles},
	{"a title comes before the first call", earlyTitle},
	{"titles are bounded", tooManyTitles},
	{"messages are found by their title", foundByTitle},
	{"ids of every kind", hostile},
	{"calls at once", concurrent},
	{"random calls agree with the naive model", randomCalls},
}
