package wire

import (
	"net/url"
	"slices"
	"strings"

	"capper/client/api"
	"capper/internal/capping"
	"capper/internal/ids"
)

// DecodeParameters decodes a URL query. If a parameter is unknown, repeated or empty, DecodeParameters returns an
// error.
func DecodeParameters(query string, known []string) (map[string]string, error) {
	if query == "" {
		return nil, nil
	}
	shown := Clip([]byte(query))
	if len(known) == 0 {
		return nil, NewFailure(api.CodeInvalidRequest, "the query %q is not allowed: this call has no query "+
			"parameters", shown)
	}
	given, err := url.ParseQuery(query)
	if err != nil {
		return nil, NewFailure(api.CodeInvalidRequest, "the query %q is not valid in a URL: %s", shown, err)
	}
	parameters := map[string]string{}
	for name, values := range given {
		field := Clip([]byte(name))
		switch {
		case !slices.Contains(known, name):
			return nil, Invalid(field, "the parameter does not exist: this call has %s",
				strings.Join(known, ", "))
		case len(values) > 1:
			return nil, Invalid(field, "the parameter is given %d times", len(values))
		case values[0] == "":
			return nil, Invalid(field, "must not be empty: leave the parameter out or give it a value")
		case len(values[0]) > maxText:
			return nil, Invalid(field, "has %d bytes and must have 1 to %d", len(values[0]), maxText)
		}
		parameters[name] = values[0]
	}
	return parameters, nil
}

// The function Flag decodes a query parameter whose value is true or false. If the parameter is absent from the query,
// Flag returns false.
func Flag(parameters map[string]string, name string) (bool, error) {
	switch text := parameters[name]; text {
	case "", "false":
		return false, nil
	case "true":
		return true, nil
	default:
		return false, Invalid(name, "%q must be true or false", Clip([]byte(text)))
	}
}

// CursorOf decodes the query parameters "cursor" and "limit" of a call for one page of a list. CursorOf returns the
// first user of the page and the maximum number of entries. If the scheme of the ids is nil, the ids are dense
// (32-bit numbers).
func CursorOf(parameters map[string]string, scheme *ids.Scheme, usual, most int) (first capping.UserID, n int,
	err error) {
	n = usual
	if text, given := parameters["cursor"]; given {
		var ok bool
		if scheme == nil {
			first, ok = UserID(text)
		} else {
			first, ok = parseImage(text)
		}
		if !ok {
			return 0, 0, Invalid("cursor", "%s is not the value of next in an earlier response", Clip([]byte(text)))
		}
	}
	if text, given := parameters["limit"]; given {
		wanted, ok := UserID(text)
		if !ok || wanted < 1 || int64(wanted) > int64(most) {
			return 0, 0, Invalid("limit", "%s is not a number from 1 to %d", Clip([]byte(text)), most)
		}
		n = int(wanted)
	}
	return first, n, nil
}

// A Position is the beginning of a page in a list of users: the page begins after a certain user. The zero Position
// means the first user.
type Position struct {
	after capping.UserID
	given bool
}

// PageOf decodes the query parameters "after" and "max" of a call for a page of users. If the scheme of the ids is
// nil, the ids are dense (32-bit numbers). PageOf returns the position at which the page begins, and the maximum
// number of ids in the page. If the query parameter "after" is absent, the page begins with the first id. If the
// query parameter "max" is absent, the page has at most "usual" ids. A page never has more than "most" ids.
func PageOf(parameters map[string]string, scheme *ids.Scheme, usual, most int) (from Position, n int, err error) {
	n = min(usual, most)
	if text, given := parameters["after"]; given {
		after, err := userAfter(text, scheme)
		if err != nil {
			return from, 0, err
		}
		from = Position{after, true}
	}
	if text, given := parameters["max"]; given {
		wanted, ok := UserID(text)
		if !ok || wanted < 1 || int64(wanted) > int64(most) {
			return from, 0, Invalid("max", "%s is not a number from 1 to %d", Clip([]byte(text)), most)
		}
		n = int(wanted)
	}
	return from, n, nil
}

func userAfter(text string, scheme *ids.Scheme) (capping.UserID, error) {
	if scheme == nil {
		after, ok := UserID(text)
		if !ok {
			return 0, Invalid("after", "%s is not a user id (0 to 4294967295)", Clip([]byte(text)))
		}
		return after, nil
	}
	image, err := scheme.Parse([]byte(text))
	if err != nil {
		return 0, Invalid("after", "%s", err)
	}
	return capping.UserID(image), nil
}
