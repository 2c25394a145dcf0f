package audience

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestExpressionsAreReadAsDescribed(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"active":                         "active",
		" \tactive\r\n":                  "active",
		"a&b|c-d":                        "a & b | c-d",
		"a | b & c":                      "a | b & c",
		"(a | b) & c":                    "(a | b) & c",
		"a - b - c":                      "a - b - c",
		"a - (b - c)":                    "a - (b - c)",
		"a | b - c | d":                  "a | b - c | d",
		"a -b":                           "a - b",
		"(a)-b":                          "a - b",
		"(a)-(b)":                        "a - b",
		"((a))":                          "a",
		"a-b":                            "a-b",
		"active - vip - country/my":      "active - vip - country/my",
		"tz/America/Port-au-Prince&x":    "tz/America/Port-au-Prince & x",
		"tz/Etc/GMT+8 | 2026.q1_x":       "tz/Etc/GMT+8 | 2026.q1_x",
		"a & (b & c)":                    "a & (b & c)",
		"all-default":                    "all-default",
		strings.Repeat("a|", 255) + "a":  strings.Repeat("a | ", 255) + "a",
		strings.Repeat("x", MaxName):     strings.Repeat("x", MaxName),
		nested(MaxNesting):               "a",
		"a" + strings.Repeat(" ", 4_095): "a",
	} {
		e, err := Parse(text)
		require.NoError(t, err, text)
		require.Equal(t, want, e.String())
		require.Equal(t, text, e.Text())
	}
}

func nested(n int) string { return strings.Repeat("(", n) + "a" + strings.Repeat(")", n) }

func TestSyntaxErrorsNameTheColumnAndWhatWasExpected(t *testing.T) {
	t.Parallel()
	const operand, operator = `a name or "("`, `an operator ("&", "|", "-") or the end`
	for text, want := range map[string]SyntaxError{
		"":                                      {1, operand, "the end"},
		"   ":                                   {4, operand, "the end"},
		"a &":                                   {4, operand, "the end"},
		"a & & b":                               {5, operand, `"&"`},
		"-a":                                    {1, operand, `"-"`},
		"a & -b":                                {5, operand, `"-"`},
		"a b":                                   {3, operator, `"b"`},
		"active and vip":                        {8, operator, `"and"`},
		"a)":                                    {2, operator, `")"`},
		"()":                                    {2, operand, `")"`},
		"(a":                                    {3, `an operator ("&", "|", "-") or ")"`, "the end"},
		"(a b)":                                 {4, `an operator ("&", "|", "-") or ")"`, `"b"`},
		"a(b)":                                  {2, operator, `"("`},
		"a - b- c":                              {8, operator + `; the name before it ends in "-"`, `"c"`},
		"a | é":                                 {5, anyToken, `"\u00e9"`},
		"a |\u00a0b":                            {4, anyToken, `"\u00a0"`},
		"a | _b":                                {5, anyToken, `"_"`},
		"a + b":                                 {3, anyToken, `"+"`},
		"a, b":                                  {2, anyToken, `","`},
		"a\xff":                                 {2, anyToken, `"\xff"`},
		"a & " + strings.Repeat("x", MaxName+1): {5, "a name of at most 128 characters", "one of 129"},
	} {
		_, err := Parse(text)
		var is *SyntaxError
		require.ErrorAs(t, err, &is, text)
		require.Equal(t, want, *is, text)
	}
	_, err := Parse("a & & b")
	require.EqualError(t, err, `column 5: expected a name or "(", got "&"`)
}

// TestPlainExpressions checks that Plain returns a text without named expressions that selects the
// same users when it is parsed again.
func TestPlainExpressions(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a | ", 200) + "a"
	named, err := NewNamed(map[string]string{"engaged": "active | opened", "best": "engaged -vip", "long": long})
	require.NoError(t, err)
	for text, want := range map[string]string{
		"active - vip": "", "engaged": "active | opened", "best & eu": "(active | opened - vip) & eu",
		"eu - best": "eu - (active | opened - vip)", "long": long,
		"long | long": "", // more names than a call may have
	} {
		e, err := Parse(text)
		require.NoError(t, err)
		require.Empty(t, e.Plain(), "nothing is replaced yet")
		e, err = e.With(named)
		require.NoError(t, err)
		require.Equal(t, want, e.Plain())
		if want != "" {
			again, err := Parse(want)
			require.NoError(t, err)
			require.Equal(t, e.String(), again.String())
		}
	}
}

func TestBoundsOfExpressions(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a" + strings.Repeat(" ", 4_096): "an audience expression must have at most 4096 bytes, got 4097",
		strings.Repeat("a|", 256) + "a":  "column 513: an expression must have at most 256 names",
		nested(MaxNesting + 1):           "column 65: an expression must have at most 64 parentheses within each other",
		strings.Repeat("(", 4_000):       "column 65: an expression must have at most 64 parentheses within each other",
	} {
		_, err := Parse(text)
		require.EqualError(t, err, want)
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"active - vip - country/my", "(a)-b", "a -b&c|(d)", "a - (b - c)", "((", "a-b-", "é",
		nested(64)} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		e, err := Parse(text)
		if err != nil {
			var syntax *SyntaxError
			if errors.As(err, &syntax) {
				require.Positive(t, syntax.Column)
				require.LessOrEqual(t, syntax.Column, len([]rune(text))+1)
			}
			return
		}
		if len(e.String()) > MaxText { // blanks are added
			return
		}
		again, err := Parse(e.String())
		require.NoError(t, err)
		require.Equal(t, e.String(), again.String())
		require.Equal(t, shape(e.root), shape(again.root))
	})
}

// shape formats an expression with parentheses around every operator.
func shape(n *node) string {
	if n.operator == 0 {
		return n.name
	}
	return fmt.Sprintf("(%s%c%s)", shape(n.left), n.operator, shape(n.right))
}

func TestNamesAreExpanded(t *testing.T) {
	t.Parallel()
	named, err := NewNamed(map[string]string{
		"engaged": "active | opened", "quiet-ones": "all - engaged", "twice": "engaged & engaged",
	})
	require.NoError(t, err)
	require.Equal(t, []string{"engaged", "quiet-ones", "twice"}, named.Names())
	require.Equal(t, "all - engaged", named.Text("quiet-ones"))
	require.Empty(t, named.Text("nobody"))
	for text, want := range map[string]string{
		"engaged":              "active | opened",
		"vip & engaged":        "vip & (active | opened)",
		"quiet-ones - engaged": "all - (active | opened) - (active | opened)",
		"twice":                "(active | opened) & (active | opened)",
		"active":               "active",
	} {
		e, err := Parse(text)
		require.NoError(t, err)
		e, err = e.With(named)
		require.NoError(t, err)
		require.Equal(t, want, e.String())
		require.Equal(t, text, e.Text())
	}
	var none *Named
	e, err := Parse("engaged")
	require.NoError(t, err)
	e, err = e.With(none)
	require.NoError(t, err)
	require.Equal(t, "engaged", e.String())
}

func TestFaultsOfNamedExpressions(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		texts map[string]string
		want  string
	}{
		"itself": {map[string]string{"a": "vip - a"}, "a: a refers to itself: a → a"},
		"a circle": {map[string]string{"a": "b", "b": "c | x", "c": "a", "outside": "a"},
			"a: a refers to itself: a → b → c → a"},
		"a circle behind another": {map[string]string{"a": "b", "b": "c", "c": "b"},
			"b: b refers to itself: b → c → b"},
		"syntax": {map[string]string{"a": "b &", "c": "a"}, `a: column 4: expected a name or "(", got the end`},
		"all": {map[string]string{"all": "b"}, `all: name "all" has a fixed meaning in audience expressions: ` +
			`use another name`},
		"default": {map[string]string{"default": "b"}, `default: name "default" has a fixed meaning in audience ` +
			`expressions: use another name`},
		"bad names": {map[string]string{"a b": "c", "": "c", "-a": "c", "(": "c"}, badName("") + "\n" + badName("(") +
			"\n" + badName("-a") + "\n" + badName("a b")},
		"several": {map[string]string{"b": "b", "a": ""}, "a: column 1: expected a name or \"(\", got the end\nb: b " +
			"refers to itself: b → b"},
	} {
		_, err := NewNamed(c.texts)
		require.EqualError(t, err, c.want, name)
	}
}

func badName(name string) string {
	return name + `: must be 1 to 128 letters, digits, ".", "_", "-", "/" or "+", the first a letter or digit`
}

// TestHugeExpansionsAreRefused checks that a hundred named expressions with 2^100 names are rejected
// before anything is expanded.
func TestHugeExpansionsAreRefused(t *testing.T) {
	t.Parallel()
	texts := map[string]string{"x000": "vip"}
	for i := range 100 {
		texts[fmt.Sprintf("x%03d", i+1)] = fmt.Sprintf("x%03d | x%03d", i, i)
	}
	_, err := NewNamed(texts)
	require.EqualError(t, err,
		"x011: the audience expression must have at most 1024 names after its named expressions are expanded")

	deep := map[string]string{"y00": "vip"}
	for i := range 70 {
		deep[fmt.Sprintf("y%02d", i+1)] = fmt.Sprintf("y%02d", i)
	}
	_, err = NewNamed(deep)
	require.EqualError(t, err,
		"y65: the audience expression must have at most 64 levels of nesting after its named expressions are expanded")

	named, err := NewNamed(map[string]string{"many": strings.Repeat("a|", 255) + "a"})
	require.NoError(t, err)
	e, err := Parse("many | many | many | many | many")
	require.NoError(t, err)
	_, err = e.With(named)
	require.ErrorContains(t, err, "at most 1024 names")
}

func TestNearestNames(t *testing.T) {
	t.Parallel()
	names := []string{"active", "lapsed", "opted-out", "country/sg", "a"}
	for name, want := range map[string]string{
		"actve": "active", "Active": "active", "lapse": "lapsed", "opted_out": "opted-out", "optedout": "opted-out",
		"country/my": "country/sg", "b": "", "ab": "a", "xyz": "", "nothing-like-it": "",
	} {
		require.Equal(t, want, Nearest(name, names), name)
	}
	require.Equal(t, 3, distance("kitten", "sitting", 10))
	require.Equal(t, 2, distance("kitten", "sitting", 2))
}
