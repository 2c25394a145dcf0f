package wire

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"capper/client/api"
	"capper/internal/share"
)

// maxText is the maximum length in bytes of a cursor and of the name of a segments generation (published version) in a
// request.
const maxText = 1024

// queryFields lists the fields of api.AudienceQuery. The other fields of an audience query are valid only together with
// the field "audience".
var queryFields = []string{"audience", "sample", "part", "max_users", "cursor", "generation"}

// The method query decodes a field of an audience query (api.AudienceQuery), and returns false for any other field.
func (d *decoder) query(name string) (known bool, err error) {
	q := &d.asked
	switch name {
	case "audience":
		q.Audience, err = d.expression()
	case "sample":
		q.Sample, err = d.sample()
	case "part":
		q.Part, err = d.part()
	case "max_users":
		q.MaxUsers, err = d.whole(name, 1, d.bounds.Bitmap)
	case "cursor", "generation":
		var text string
		if text, err = d.id(name, maxText); name == "cursor" {
			q.Cursor = text
		} else {
			q.Generation = text
		}
	default:
		return false, nil
	}
	return true, err
}

// The method expression decodes the text of an audience expression, but does not check the syntax.
func (d *decoder) expression() (string, error) {
	const field = "audience"
	if other := d.otherUsers(field); other != "" {
		return "", d.bounds.bothGiven(field, other)
	}
	text, err := d.str(field)
	if err == nil && len(text) == 0 {
		empty := Invalid(field, "must not be empty: write an expression such as active - vip; all means "+
			"every user")
		empty.Column = 1
		err = empty
	}
	return string(text), err
}

func (d *decoder) sample() (*api.Sample, error) {
	s := &api.Sample{}
	given, err := d.object("sample", []string{"percent", "from", "to", "salt"}, func(name, field string) (err error) {
		switch name {
		case "percent":
			s.Percent, err = d.percent(field, above0)
		case "from":
			s.From, err = d.percent(field, from0)
		case "to":
			s.To, err = d.percent(field, above0)
		default:
			s.Salt, err = d.id(field, share.MaxSalt)
		}
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case !given["salt"]:
		return nil, Invalid("sample.salt", "is required: another salt selects another sample")
	case given["percent"] && (given["from"] || given["to"]):
		return nil, Invalid("sample.percent", "must not be combined with from and to: percent 10 means from "+
			"0 to 10")
	case !given["percent"] && !given["to"]:
		return nil, Invalid("sample.percent", "is required: a sample needs either percent, or from and to")
	case given["to"] && s.From >= s.To:
		return nil, Invalid("sample.to", "%v must be above from, which is %v", s.To, s.From)
	}
	return s, nil
}

func (d *decoder) part() (*api.Part, error) {
	p := &api.Part{}
	members := []string{"of", "index"}
	given, err := d.object("part", members, func(name, field string) (err error) {
		if name == "of" {
			p.Of, err = d.whole(field, 1, api.MaxParts)
			return err
		}
		p.Index, err = d.whole(field, 0, api.MaxParts-1)
		return err
	})
	for _, name := range members {
		if err == nil && !given[name] {
			err = Invalid("part."+name, "is required: a part needs both of and index")
		}
	}
	if err == nil && p.Index >= p.Of {
		err = Invalid("part.index", "%d does not exist: there are %d parts, counted from 0", p.Index, p.Of)
	}
	return p, err
}

// The method object decodes a JSON object that may have the given fields, and returns the names of the fields that the
// object has. The argument "member" is a function that must decode the value of each field.
func (d *decoder) object(
	field string, members []string, member func(name, field string) error,
) (given map[string]bool, err error) {
	if !d.accept('{') {
		return nil, Invalid(field, "%s is not an object", d.value())
	}
	given = map[string]bool{}
	if d.accept('}') {
		return given, nil
	}
	return given, d.members(func(name string) error {
		inner := field + "." + Clip([]byte(name))
		switch {
		case given[name]:
			return Invalid(inner, "the field is given twice")
		case !slices.Contains(members, name):
			return Invalid(inner, "the field does not exist: %s has %s", field, strings.Join(members, ", "))
		}
		given[name] = true
		return member(name, inner)
	})
}

// The method whole decodes an integer that must be between the arguments "least" and "most", inclusive.
func (d *decoder) whole(field string, least, most int) (int, error) {
	d.skipSpace()
	n, end := number(d.data, d.pos)
	if end < 0 || int64(n) < int64(least) || int64(n) > int64(most) {
		return 0, Invalid(field, "%s is not a number from %d to %d", d.value(), least, most)
	}
	d.pos = end
	return int(n), nil
}

// jsonNumber matches a JSON number at the beginning of a text.
var jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?`)

// These constants describe the permitted percentages of a field, in error texts.
const (
	above0 = "above 0 and at most 100"
	from0  = "from 0 and below 100"
)

func (d *decoder) percent(field, bounds string) (float64, error) {
	d.skipSpace()
	text := jsonNumber.Find(d.data[d.pos:])
	percent, err := strconv.ParseFloat(string(text), 64)
	within := percent > 0 && percent <= 100
	if bounds == from0 {
		within = percent >= 0 && percent < 100
	}
	if err != nil || !within {
		return 0, Invalid(field, "%s is not a percentage %s", d.value(), bounds)
	}
	d.pos += len(text)
	return percent, nil
}

// otherUsers returns the name of another request field that has already listed users, or "" if there is no such field.
func (d *decoder) otherUsers(name string) string {
	for _, other := range []string{"user_ids", "users_bitmap", "users_packed", "images", "audience"} {
		if other != name && d.seen[other] {
			return other
		}
	}
	return ""
}

func (b *Bounds) bothGiven(name, other string) error {
	return Invalid(name, "%s and %s are both given, but exactly one of %s is allowed", other, name, b.forms())
}
