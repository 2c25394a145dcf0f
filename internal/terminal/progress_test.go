package terminal

import (
	"bytes"
	"errors"
	"testing"

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
