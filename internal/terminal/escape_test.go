package terminal

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
)

// attack is what a terminal must not get: C0 and C1 controls, as characters and
// as bytes, and marks of direction.
const attack = "a\x1b[2Jb\x07\x08\r\x7f\u009b31m\u202e\u2066\u2028\x9b\x00\u200b"

const harmless = `a\u001b[2Jb\u0007\u0008\u000d\u007f\u009b31m\u202e\u2066\u2028\x9b\u0000\u200b`

func TestEscapesWhatATerminalObeys(t *testing.T) {
	t.Parallel()
	require.Equal(t, harmless+`\n\t`, Escape(attack+"\n\t"))
	for _, plain := range []string{"", "promo-1", "Zoë 20 % … 日本 😀 é", "a\u00a0b"} {
		require.Equal(t, plain, Escape(plain))
	}
}

func TestWriterKeepsLinesAndCharactersWhole(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("日本 😀\tx\n"+attack+"y\n", 3)
	want := strings.Repeat("日本 😀\tx\n"+harmless+"y\n", 3)
	for step := 1; step < 9; step++ {
		var b bytes.Buffer
		w := NewWriter(&b)
		for rest := []byte(text); len(rest) > 0; {
			n, err := w.Write(rest[:min(step, len(rest))])
			require.NoError(t, err)
			rest = rest[n:]
		}
		require.Equal(t, want, b.String(), "%d bytes at a time", step)
	}
}

func TestJSONStaysTheSame(t *testing.T) {
	t.Parallel()
	var all strings.Builder
	for r := range rune(0x3000) {
		all.WriteRune(r)
	}
	all.WriteString("\U000e0001😀")
	var b bytes.Buffer
	require.NoError(t, json.NewEncoder(NewWriter(&b)).Encode(all.String()))
	for _, r := range strings.TrimSuffix(b.String(), "\n") {
		require.False(t, unicode.IsControl(r), "%U", r)
	}
	var back string
	require.NoError(t, json.Unmarshal(b.Bytes(), &back))
	require.Equal(t, all.String(), back)
}
