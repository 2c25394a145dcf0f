package yamltree

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/stretchr/testify/require"
)

// bombs returns texts of about size bytes that exhaust the memory or time of the parser or of the tree's reader. The
// key is the rule that rejects the text.
func bombs(size int) map[string]string {
	times := func(s string) string { return strings.Repeat(s, size/len(s)) }
	lines := func(line func(i int) string) string {
		var b strings.Builder
		for i := 0; b.Len() < size; i++ {
			b.WriteString(line(i))
		}
		return b.String()
	}
	return map[string]string{
		"brackets":            times("["),
		"brackets, lines":     times("[\n"),
		"brackets, values":    times("[a,"),
		"braces":              times("{"),
		"braces, keys":        times("{a: "),
		"both":                times("[{a: "),
		"closing brackets":    times("]"),
		"dashes":              times("- "),
		"dashes in brackets":  "[" + times("- "),
		"dashes, lines":       times("-\n"),
		"question marks":      times("? "),
		"questions, brackets": "[" + times("? "),
		"colons":              times(": "),
		"keys in a row":       times("a: "),
		"keys in brackets":    "[" + times("a: ") + "]",
		"quoted keys":         times(`"a": `),
		"indentation":         lines(func(i int) string { return strings.Repeat(" ", i) + "a:\n" }),
		"dashes, indented":    lines(func(i int) string { return strings.Repeat(" ", i) + "-\n" }),
		"anchors":             times("&a "),
		"anchors of a value":  "a: " + times("&a ") + "1",
		"anchors in brackets": "[" + times("&a ") + "1]",
		"anchors, lines":      "a: " + times("&a\n  ") + "1",
		"tags":                times("!a "),
		"tags in brackets":    "[" + times("!!str ") + "1]",
		"tags, lines":         times("!a\n") + "1",
		"merge keys":          times("<<: "),
		"reserved":            times("%"),
		"keys of one mapping": lines(func(i int) string { return fmt.Sprintf("k%d: 1\n", i) }),
		"values of one list":  times("- a\n"),
		"quoted values":       "[" + times(`"a",`) + "]",
		"literals":            times("a: |\n"),
		"documents":           times("---\n"),
		"aliases":             "a: &a 1\nb: [" + times("*a,") + "]",
		"aliases to aliases":  billion(9, 10),
		"aliases, wide":       billion(3, 400),
		"alias in its anchor": "a: &a\n  - b: [*a]\n",
		"size":                strings.Repeat("#", maxBytes+1),
		"behind comments":     lines(func(int) string { return "[ # ]\n" }),
		"behind quotes":       lines(func(int) string { return "[ \"]\" , ']' , \n" }),
		"comments in quotes":  "a: \"\n" + lines(func(int) string { return "# \\\n" }) + "\"\n" + times("["),
	}
}

// billion returns nested lists, each with width aliases to the previous level.
func billion(levels, width int) string {
	var b strings.Builder
	b.WriteString("l0: &l0 [x]\n")
	for i := 1; i <= levels; i++ {
		fmt.Fprintf(&b, "l%d: &l%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*l%d,", i-1), width),
			","))
	}
	return b.String()
}

// TestBombsAreRefusedInBoundedMemory measures each bomb in a separate process, which aborts before it exhausts the
// machine.
func TestBombsAreRefusedInBoundedMemory(t *testing.T) {
	t.Parallel()
	const most = 128 << 20 // the largest is lexing 100,000 marks; a plain start of a test binary takes 15 MB
	if name := os.Getenv("YAMLTREE_BOMB"); name != "" {
		var fault *Fault
		require.ErrorAs(t, parseWithin(t, bombs(200_000)[name], most), &fault)
		require.Less(t, len(fault.Error()), 500)
		for _, size := range []int{90_000, 20_000} { // below the bound for marks; some are nothing but lists then
			_ = parseWithin(t, bombs(size)[name], most)
		}
		fmt.Println("refused: ", fault)
		return
	}
	for name := range bombs(0) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			child := exec.CommandContext(ctx, os.Args[0], "-test.run", "^TestBombsAreRefusedInBoundedMemory$",
				"-test.v")
			child.Env = append(os.Environ(), "YAMLTREE_BOMB="+name)
			out, err := child.CombinedOutput()
			require.NoError(t, err, "%s", out)
			require.Contains(t, string(out), "refused: ")
		})
	}
}

// parseWithin parses a text and aborts when the memory exceeds the limit.
func parseWithin(t *testing.T, text string, most uint64) error {
	parsed := make(chan error, 1)
	go func() {
		_, err := Parse([]byte(text), parser.AllowDuplicateMapKey())
		parsed <- err
	}()
	look := time.NewTicker(2 * time.Millisecond)
	defer look.Stop()
	for {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		require.Less(t, m.Sys, most, "memory taken from the system")
		select {
		case err := <-parsed:
			return err
		case <-look.C:
		}
	}
}

func TestWhatIsRefusedIsSaidWithItsPlace(t *testing.T) {
	t.Parallel()
	few, many := bombs(20_000), bombs(200_000)
	for text, want := range map[string]string{
		few["brackets"]:            "1:33: is too deep: more than 32 levels within each other",
		few["dashes"]:              "1:65: is too deep: ",
		few["question marks"]:      "1:65: is too deep: ",
		few["indentation"]:         "33:34: is too deep: ",
		few["alias in its anchor"]: "2:9: alias *a refers to itself",
		few["size"]:                "must be at most 1048576 bytes, this is longer",
		few["aliases to aliases"]:  "6:9: is too much: more than 100000 values after every alias is replaced by",
		many["closing brackets"]: "1:1: is too much: more than 100000 brackets, colons, quotes and the like up " +
			"to here",
		many["values of one list"]:  "25001:1: is too much: more than 50000 names, values and signs up to here",
		many["keys of one mapping"]: "16667:9: is too much: more than 50000 names",
	} {
		_, err := Parse([]byte(text))
		require.ErrorContains(t, err, want)
		require.True(t, strings.HasPrefix(err.Error(), want), "%s", err)
	}
}

func TestWhatPeopleWriteIsParsed(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("limits:\n  segments:\n")
	for i := range 255 {
		fmt.Fprintf(&b, "    segment-%d:\n", i)
		for k := range 8 {
			fmt.Fprintf(&b, "      - {name: limit-%d, max: %d, window: 24h, channels: [push, \"e-mail\"]} # why: "+
				"[[[{{{\n", k, k)
		}
	}
	require.Greater(t, b.Len(), 150_000)
	for name, text := range map[string]string{
		"255 segments of 8 limits": b.String(),
		"comments":                 strings.Repeat("# "+strings.Repeat("-=[:]=-", 11)+"\n", 10_000) + "a: 1\n",
		"a byte order mark":        "\xef\xbb\xbfa: 1",
		"a long value":             "a: |\n" + strings.Repeat("  some words and - signs: [here]\n", 10_000),
		"anchors":                  "a: &a {x: 1}\nb: *a\nc: [*a, *a]\n",
		"30 levels":                strings.Repeat("[", 30) + strings.Repeat("]", 30),
		"siblings":                 strings.Repeat("- a: {b: [c]}\n  d:\n    - e\n", 2_000),
		"compact lists":            "a:\n- - - b\n    - c\n- d\n",
		"windows":                  "a: 1\r\nb:\r\n  - c\r\n",
		"one document with marks":  "---\na: 1\n...\n",
	} {
		_, err := Parse([]byte(text))
		require.NoError(t, err, name)
	}
	for text, want := range map[string]string{
		"":                  "is empty",
		"# nothing\n":       "is empty",
		"a: 1\n---\nb: 2\n": "3:1: a second document begins here, but a file must hold only one",
		"a: \xff":           "must be UTF-8 text",
		"a: 1\na: 2\n":      "2:1: mapping key \"a\" already defined at [1:1]",
		"a: [1":             "1:4: sequence end token ']' not found",
	} {
		_, err := Parse([]byte(text))
		require.EqualError(t, err, want)
	}
}

func TestOnlySoMuchOfAFileIsRead(t *testing.T) {
	t.Parallel()
	text, err := ReadFile("/dev/zero")
	require.NoError(t, err)
	require.Len(t, text, maxBytes+1)
	_, err = ReadFile("not/there")
	require.ErrorIs(t, err, os.ErrNotExist)
}

// FuzzParse checks that the marks of a text bound its tokens, and that an accepted text neither takes long nor causes
// a panic.
func FuzzParse(f *testing.F) {
	for _, text := range bombs(400) {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if checkMarks([]byte(text)) != nil {
			return
		}
		n, _ := countMarks([]byte(text), maxMarks)
		require.LessOrEqual(t, len(lexer.Tokenize(text)), 2*n+2)
		_, _ = Parse([]byte(text))
	})
}
