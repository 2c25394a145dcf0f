package console

import (
	"fmt"
	"strconv"

	"capper/client"
	"capper/client/api"
	"capper/internal/console/frame"
	"capper/internal/ids"
)

// userRef identifies a user by a dense id (32-bit number) or by a canonical id of another kind.
type userRef struct {
	dense uint32
	id    string // "": the id is dense
}

// String returns the user id as text.
func (u userRef) String() string {
	if u.id != "" {
		return u.id
	}
	return fmt.Sprint(u.dense)
}

// The method forecast adds the user to an API request for a forecast and returns the request.
func (u userRef) forecast(r *client.ForecastRequest) *client.ForecastRequest {
	if u.id != "" {
		r.IDs = []string{u.id}
	} else {
		r.Users = []uint32{u.dense}
	}
	return r
}

// kindOf asks the API for the kind of the service's user ids.
func kindOf(v *frame.Visit) (ids.Kind, error) {
	described, err := v.API.IDs(v.Context())
	if err != nil {
		return ids.Dense, err
	}
	return ids.ParseKind(described.Kind)
}

// parseUser parses the user id that a visitor has typed. If the typed id is invalid, the result "wrong" describes the
// error. For a valid id, wrong is "".
func parseUser(kind ids.Kind, typed string) (user userRef, wrong string) {
	if kind == ids.Dense {
		id, err := strconv.ParseUint(typed, 10, 32)
		if err != nil {
			return user, "A user id is a whole number from 0 to 4294967295."
		}
		return userRef{dense: uint32(id)}, ""
	}
	id, err := ids.New(kind, ids.Key{}).Canonical(nil, []byte(typed))
	if err != nil {
		return user, "The id " + err.Error() + "."
	}
	return userRef{id: string(id)}, ""
}

// The method explain asks the API why the user may or may not receive messages now.
func (u userRef) explain(v *frame.Visit) (*api.Explanation, error) {
	if u.id == "" {
		return v.API.Explain(v.Context(), u.dense)
	}
	found, err := v.API.ExplainID(v.Context(), u.id)
	if err != nil {
		return nil, err
	}
	return &found.Explanation, nil
}

// The method erase asks the API to erase the recorded sends of the user.
func (u userRef) erase(v *frame.Visit) error {
	if u.id == "" {
		return v.API.Erase(v.Context(), u.dense)
	}
	return v.API.EraseID(v.Context(), u.id)
}
