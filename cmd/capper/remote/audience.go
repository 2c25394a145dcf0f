package remote

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"capper/client"
)

// Narrowed is what users of an expression a command is about.
type Narrowed struct {
	Sample     Percent `placeholder:"P%" help:"Only that share of them, always the same one; with --salt."`
	Salt       string  `placeholder:"TEXT" help:"Of --sample: another salt is another share."`
	Generation string  `placeholder:"NAME" help:"The generation that the names are of, as an earlier run told it. Default: the one in use."`
}

// Audience is the users of the expression.
func (n *Narrowed) Audience(expression string) (*client.Audience, error) {
	if (n.Sample == 0) != (n.Salt == "") {
		return nil, errors.New("--sample and --salt: go together, so that the share can be had again; a salt is not empty")
	}
	a := &client.Audience{Expression: expression, Generation: n.Generation}
	if n.Sample != 0 {
		a.Sample = &client.Sample{Percent: float64(n.Sample), Salt: n.Salt}
	}
	return a, nil
}

// Given reports whether any of it was said.
func (n *Narrowed) Given() bool { return *n != Narrowed{} }

// Percent is a share, as 10% or 10. 0: none was given.
type Percent float64

// UnmarshalText reads a share above 0 %, at most 100 %.
func (p *Percent) UnmarshalText(text []byte) error {
	share, err := strconv.ParseFloat(strings.TrimSuffix(string(text), "%"), 64)
	if err != nil || !(share > 0 && share <= 100) {
		return fmt.Errorf("must be more than 0%%, at most 100%%, got %q", text)
	}
	*p = Percent(share)
	return nil
}

// pointed is the fault of an expression with the place under it.
type pointed struct {
	error
	expression string
	column     int // in characters, from 1
}

// Error shows the line of the expression, and a caret below the place.
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

// Pointed shows where an expression is wrong, if that is what was refused.
func Pointed(err error, expression string) error {
	var refused *client.Error
	if !errors.As(err, &refused) || refused.Column < 1 {
		return err
	}
	return &pointed{err, expression, refused.Column}
}
