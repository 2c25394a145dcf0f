package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"capper/client"
	"capper/internal/ids"
	"capper/internal/terminal"
)

// The method Scheme asks the service for the kind and key of its user ids. If the service does not tell the kind of its
// user ids, Scheme assumes dense ids (32-bit numbers). An older version of the service does not tell the kind, nor does
// the service if the API key lacks the right to read the kind.
func (r *Service) Scheme(ctx context.Context, api *client.Client) (*ids.Scheme, error) {
	described, err := api.IDs(ctx)
	var refused *client.Error
	switch {
	case errors.As(err, &refused) && (refused.Status == http.StatusNotFound || refused.Status == http.StatusForbidden ||
		refused.Status == http.StatusMethodNotAllowed):
		return ids.New(ids.Dense, ids.Key{}), nil
	case err != nil:
		return nil, r.Hinted(err)
	}
	kind, err := ids.ParseKind(described.Kind)
	if err != nil {
		return nil, terminal.Hinted(fmt.Errorf("the service sent an unknown kind of user ids: %w", err),
			"the service is newer than this program: use the program of the service's version")
	}
	var key ids.Key
	if kind != ids.Dense {
		if key, err = ids.ParseKey(described.Key); err != nil {
			return nil, fmt.Errorf("the service sent an invalid hash key for user ids: %w", err)
		}
	}
	return ids.New(kind, key), nil
}

// The type Users holds the users whom the arguments of a command name: dense ids (32-bit numbers), or canonical ids of
// another kind.
type Users struct {
	Dense []uint32
	IDs   []string // nil: dense ids
}

// ParseUsers parses the arguments of a command that name users. The error of ParseUsers names the argument, its value
// and the broken rule, and has the exit status for wrong usage. The Go argument "name" is the name of the command-line
// argument, for the error text.
func ParseUsers(scheme *ids.Scheme, name string, arguments []string) (users Users, err error) {
	for _, argument := range arguments {
		if scheme.Kind() == ids.Dense {
			var id UserID
			if err := id.UnmarshalText([]byte(argument)); err != nil {
				return Users{}, terminal.Misuse(fmt.Errorf("<%s>: %w", name, err))
			}
			users.Dense = append(users.Dense, uint32(id))
			continue
		}
		id, err := scheme.Canonical(nil, []byte(argument))
		if err != nil {
			return Users{}, terminal.Misuse(fmt.Errorf("<%s>: %w", name, err))
		}
		users.IDs = append(users.IDs, string(id))
	}
	return users, nil
}
