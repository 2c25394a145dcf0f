package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"capper/client"
	"capper/client/api"
)

// The type Narrowed holds the command-line flags that restrict an audience expression to a part of its users.
type Narrowed struct {
	Sample     Percent `placeholder:"P%" help:"Percentage of the audience to select, at random. With the same --salt, the command always selects the same users. Ranges that do not overlap, such as 0%-10% and 10%-20%, select groups without common users."`
	Salt       string  `placeholder:"TEXT" help:"Salt (any text) of the random sample: with the same salt, --sample selects the same users. With another salt, --sample selects other users."`
	Generation string  `placeholder:"NAME" help:"Name of the generation (published version of all segments and sets) to use, such as a name that an earlier run printed. Default: the generation that the service uses now."`
}

// The method Audience returns the audience part of an API request: the users of an audience expression, restricted by
// the flags.
func (n *Narrowed) Audience(expression string) (*client.Audience, error) {
	if (n.Sample == Percent{}) != (n.Salt == "") {
		return nil, errors.New(
			"--sample and --salt must be set together, because the salt makes a sample repeatable")
	}
	a := &client.Audience{Expression: expression, Generation: n.Generation}
	switch {
	case n.Sample == Percent{}:
	case n.Sample.From == 0:
		a.Sample = &api.Sample{Percent: n.Sample.To, Salt: n.Salt} // older services know only this form
	default:
		a.Sample = &api.Sample{From: n.Sample.From, To: n.Sample.To, Salt: n.Salt}
	}
	return a, nil
}

// The method Given reports whether at least one of the flags was set.
func (n *Narrowed) Given() bool { return *n != Narrowed{} }

// Percent is a percentage of users, such as 10% or 10, or a range of percentages, such as 10%-20%. The zero value of
// Percent means that the command line does not contain the flag.
type Percent struct{ From, To float64 }

// UnmarshalText parses the value of a flag: a percentage above 0 and at most 100, or a range of two percentages in
// ascending order.
func (p *Percent) UnmarshalText(text []byte) error {
	first, last, isCell := strings.Cut(string(text), "-")
	if !isCell {
		first, last = "0", first
	}
	from, err := percentage(first)
	to, also := percentage(last)
	if errors.Join(err, also) != nil || !(from >= 0 && from < to && to <= 100) {
		return fmt.Errorf(
			"must be a percentage such as 20%%, or a range such as 10%%-20%%, between 0%% and 100%%, got %q", text)
	}
	*p = Percent{From: from, To: to}
	return nil
}

// The function percentage parses a number with an optional fraction and an optional percent sign.
func percentage(text string) (float64, error) {
	text = strings.TrimSuffix(text, "%")
	if strings.HasPrefix(text, "+") {
		return 0, strconv.ErrSyntax
	}
	return strconv.ParseFloat(text, 64)
}

// The type "pointed" holds an error in an audience expression, together with the position of the error in the
// expression.
type pointed struct {
	error
	expression string
	column     int // in characters, beginning with 1
}

// The method Error returns the message of the error, the faulty line of the expression, and a caret below the faulty
// position.
func (p *pointed) Error() string {
	before, behind := []rune(p.expression), []rune(nil)
	at := min(p.column-1, len(before))
	before, behind = before[:at], before[at:]
	line := string(before)
	line = line[strings.LastIndexByte(line, '\n')+1:]
	rest, _, _ := strings.Cut(string(behind), "\n")
	width := len([]rune(line))
	return fmt.Sprintf("%v\n  %s\n  %s^", p.error, strings.ReplaceAll(line+rest, "\t", " "), strings.Repeat(" ", width))
}

func (p *pointed) Unwrap() error { return p.error }

// If the service returned the position of an error in an audience expression, the function Pointed adds the position to
// the text of the error.
func Pointed(err error, expression string) error {
	var refused *client.Error
	if !errors.As(err, &refused) || refused.Column < 1 {
		return err
	}
	return &pointed{err, expression, refused.Column}
}
