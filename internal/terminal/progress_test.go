package terminal

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// broken is where nothing can be written.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("broken") }

func TestStepsEndWithALineOfTheirOwn(t *testing.T) {
	t.Parallel()
	var talk bytes.Buffer
	p := NewProgress(&Streams{Program: "tool", Err: NewWriter(&talk)}, Bytes)
	p.Step("read", 0)
	p.Add(1_500_000, 2_000_000)
	p.Add(500_000, 0)
	p.Step("compare", 0)
	p.Stop()
	p.Stop()
	require.Regexp(t, `^tool: read: 2\.0 MB in \d+\.\d s, \d+ MB/s\ntool: compare: \d+\.\d s\n$`, talk.String())
}

// What becomes of users is summed up by a report, so short work says nothing.
func TestShortWorkOverUsersIsSilent(t *testing.T) {
	t.Parallel()
	var talk bytes.Buffer
	p := NewProgress(&Streams{Program: "tool", Err: NewWriter(&talk)}, Users)
	p.Step("filter", 10)
	p.Reach(5, "5 allowed")
	p.told = p.told.Add(-lineEvery)
	p.Reach(8, "8 allowed")
	p.Stop()
	require.Regexp(t, `^tool: 8 of 10 users, \d+/s, \d+s left: 8 allowed\n$`, talk.String())
}

// The rate of slow work is per minute or hour, and the time left is that of this rate.
func TestSlowWorkHasTimeLeft(t *testing.T) {
	t.Parallel()
	for done, line := range map[int64]string{
		0: "0 of 200 lines\n", 2: "2 of 200 lines, 12/h, 16h3[0-9]m[0-9]+s left\n",
		100: "100 of 200 lines, 10/m, 10m0s left\n", 150: "150 of 200 lines, 15/m, 3m20s left\n",
	} {
		var talk bytes.Buffer
		p := NewProgress(&Streams{Program: "tool", Out: NewWriter(&talk), Err: NewWriter(&talk)}, Lines)
		p.Step("pace", 200)
		p.since, p.told = p.since.Add(-10*time.Minute), p.told.Add(-lineEvery)
		p.Reach(done, "")
		p.Stop()
		require.Regexp(t, "^tool: "+line+"$", talk.String())
	}
}

// Where nobody knows how much there is, nothing is said of the time left.
func TestLinesWithoutAnEnd(t *testing.T) {
	t.Parallel()
	var talk bytes.Buffer
	p := NewProgress(&Streams{Program: "tool", Out: NewWriter(&talk), Err: NewWriter(&talk)}, Lines)
	p.Step("pace", 0)
	p.told = p.told.Add(-lineEvery)
	p.Reach(8, "")
	p.Note("waiting")
	p.Step("pace", 10)
	p.told = p.told.Add(-lineEvery)
	p.Reach(5, "")
	p.Stop()
	require.Regexp(t, `^tool: 8 lines, \d+/s\ntool: waiting\ntool: 5 of 10 lines, \d+/s, \d+s left\n$`, talk.String())
}
