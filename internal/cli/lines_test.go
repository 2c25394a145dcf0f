package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"capper/client"
	"capper/internal/audit/verify"
	"capper/internal/terminal"
)

// piecemeal reads in pieces of any size.
type piecemeal struct {
	from io.Reader
	size func() int
}

func (p piecemeal) Read(b []byte) (int, error) { return p.from.Read(b[:min(len(b), p.size())]) }

// limited takes so many bytes and then fails.
type limited struct {
	bytes.Buffer
	left int
}

func (l *limited) Write(p []byte) (int, error) {
	n, err := min(len(p), l.left), error(nil)
	if n < len(p) {
		err = io.ErrClosedPipe
	}
	l.left -= n
	l.Buffer.Write(p[:n])
	return n, err
}

// all is a take that never waits.
func all(_ context.Context, most int) (client.Start, error) { return client.Start{Permits: most}, nil }

// Whatever a text is, however it is read, paced and cut off: what was written is its
// beginning, the count is that of the lines in it that are whole, and going on behind
// them, all of it has been written.
func TestCopiesGoOnWhereTheyEnded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "\n", "\r\n",
			strings.Repeat("long", 3000)}), 0, 60).Draw(t, "text"), "")
		whole := ""
		for skip, tries := int64(0), 0; ; tries++ {
			to := &limited{left: 1 << 30}
			if tries < 3 {
				to.left = rapid.IntRange(0, len(text)).Draw(t, "left")
			}
			c := &Copy{
				From: piecemeal{strings.NewReader(text), func() int { return rapid.IntRange(1, 5000).Draw(t, "read") }},
				To:   to, Skip: skip, Reached: func(int64) {},
				Take: func(_ context.Context, most int) (client.Start, error) {
					return client.Start{Permits: rapid.IntRange(1, most).Draw(t, "take")}, nil
				},
			}
			err := c.Run(t.Context())
			require.True(t, strings.HasPrefix(text[len(whole):], to.String()))
			part := to.String()
			if err != nil {
				require.ErrorIs(t, err, io.ErrClosedPipe)
				require.ErrorAs(t, err, new(*writeError))
				part = part[:strings.LastIndexByte(part, '\n')+1]
			}
			whole += part
			n, counted := count(strings.NewReader(whole))
			require.NoError(t, counted)
			require.Equal(t, n, c.Lines())
			if skip = n; err == nil {
				require.Equal(t, text, whole)
				return
			}
		}
	})
}

func TestInputsThatCannotBeCopied(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", maxLength)
	for text, c := range map[string]struct {
		skip    int64
		through int64
		fault   string
	}{
		"a\nb\n" + long + "\nc\n": {0, 2, "line 3 must be at most 1048576 bytes long"},
		"a\nb\n" + long + "x":     {1, 1, "line 3 must be at most 1048576 bytes long"},
		"a\nb\n" + long:           {0, 3, ""},
		"a\n" + long[1:] + "\nc":  {2, 1, ""},
		"a\nb\n":                  {3, 0, "--skip: 3 lines, but the input has only 2"},
		"":                        {1, 0, "--skip: 1 lines, but the input has only 0"},
	} {
		var to bytes.Buffer
		copied := &Copy{
			From: strings.NewReader(text), To: &to, Skip: c.skip, Reached: func(int64) {},
			Take: all,
		}
		err := copied.Run(t.Context())
		if c.fault == "" {
			require.NoError(t, err)
		} else {
			require.EqualError(t, err, c.fault)
			require.ErrorAs(t, err, new(*readError))
		}
		require.Equal(t, c.skip+c.through, copied.Lines())
	}
	broken := errors.New("broken")
	copied := &Copy{From: io.MultiReader(strings.NewReader("a\nb"), iotest.ErrReader(broken)), To: io.Discard,
		Reached: func(int64) {},
		Take:    all}
	require.ErrorIs(t, copied.Run(t.Context()), broken)
	require.EqualValues(t, 1, copied.Lines(), "what was cut off is no line")
}

func TestARateCountsTheIntervalsBetweenLines(t *testing.T) {
	t.Parallel()
	require.Equal(t, ", 2/s", lineRate(4, 1500*time.Millisecond))
	require.Empty(t, lineRate(1, time.Second))
}

func TestAStoreReportPrintsAHundredPlaces(t *testing.T) {
	t.Parallel()
	report := &verify.StoreReport{Missing: 150, Places: make([]verify.Place, 150)}
	var out bytes.Buffer
	require.NoError(t, printStore(&terminal.Streams{Out: terminal.NewWriter(&out)}, report))
	require.Equal(t, 1+100+1+1, strings.Count(out.String(), "\n"))
	require.Contains(t, out.String(), "\nand 50 more places\nstore: ")
}
