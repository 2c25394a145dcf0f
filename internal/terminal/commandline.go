package terminal

import (
	"regexp"
	"strings"

	"github.com/alecthomas/kong"
)

// The function parse parses a command line with the library kong, which reads a negative number after a flag as
// another flag. If the library rejects such a number, parse passes the number to the flag as a value, so that the error
// states the rule of the flag.
func parse(parser *kong.Kong, args []string) (*kong.Context, error) {
	command, err := parser.Parse(args)
	if err != nil && strings.Contains(err.Error(), "value but got") {
		return parser.Parse(joinNegative(args))
	}
	return command, err
}

// joinNegative joins every flag with the negative number that follows, such as --users -1 to --users=-1.
func joinNegative(args []string) (joined []string) {
	for i, arg := range args {
		if last := len(joined) - 1; isNegative(arg) && last >= 0 && args[i-1] == joined[last] &&
			strings.HasPrefix(joined[last], "--") && !strings.Contains(joined[last], "=") {
			joined[last] += "=" + arg
			continue
		}
		joined = append(joined, arg)
	}
	return joined
}

// isNegative reports whether an argument begins like a negative number.
func isNegative(arg string) bool {
	return len(arg) > 1 && arg[0] == '-' && strings.Contains(".0123456789", arg[1:2])
}

// The type plainError is an error of the command line. Its text states the rule for a value in place of the names that
// the library kong has for types of values.
type plainError struct{ error }

func (e plainError) Error() string {
	text := e.error.Error()
	for _, rule := range [][2]string{
		// The library kong begins the list of permitted values of an optional flag with an empty value.
		{`must be one of "",`, `must be one of `},
		{`expected \S+ value but got "EOL" \(<EOL>\)`, `must have a value`},
		{`expected \S+ value but got (".*") \(\w+ flag\); perhaps try (.*)\?`, `must have a value, got the flag $1; ` +
			`if this text is the value, use $2`},
		{`expected a valid (\d+) bit int but got`, `must be a whole number of at most $1 bits, got`},
		{`expected a valid (\d+) bit uint but got`, `must be a whole number of at least 0 and at most $1 bits, got`},
		{`expected a float but got (".*") \(string\)`, `must be a number, got $1`},
	} {
		text = regexp.MustCompile(rule[0]).ReplaceAllString(text, rule[1])
	}
	return text
}

func (e plainError) Unwrap() error { return e.error }
