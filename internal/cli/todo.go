package cli

import (
	"context"

	"github.com/RoaringBitmap/roaring/v2"

	"capper/client"
)

// Todo is whom a blast has still to ask for: users, or parts of an audience that
// the service works out.
type Todo struct {
	users    *roaring.Bitmap // nil: parts
	parts    *client.Parts
	answered map[int]uint64 // users of the parts that were answered, by Part.Index
}

// TodoUsers is these users.
func TodoUsers(users *roaring.Bitmap) *Todo { return &Todo{users: users} }

// TodoParts is these parts.
func TodoParts(parts *client.Parts) *Todo { return &Todo{parts: parts, answered: map[int]uint64{}} }

// Users is how many they are.
func (t *Todo) Users() int64 {
	if t.users != nil {
		return int64(t.users.GetCardinality())
	}
	return int64(t.parts.Users)
}

// Ask asks for all of them once and adds what is answered to r; told is called after each answer.
func (t *Todo) Ask(ctx context.Context, api *client.Client, request client.FilterRequest, r *Results,
	told func()) error {
	add := func(batch *client.FilterRequest, result *client.FilterResult) error {
		if batch.Audience != nil {
			t.answered[batch.Audience.Part.Index] = uint64(result.Summary.Requested)
		}
		r.Add(result)
		told()
		return nil
	}
	if t.users == nil {
		return api.FilterParts(ctx, &request, t.parts, add)
	}
	request.Bitmap = t.users
	return api.FilterAll(ctx, &request, add)
}

// Rest is those of whom nothing is known after Ask, not even that they are unavailable.
func (t *Todo) Rest(r *Results) *Todo {
	if t.users != nil {
		return TodoUsers(r.Missing(t.users))
	}
	rest := &client.Parts{Generation: t.parts.Generation, Users: t.parts.Users}
	for _, part := range t.parts.List {
		users, answered := t.answered[part.Part.Index]
		if answered {
			rest.Users -= min(users, rest.Users)
		} else {
			rest.List = append(rest.List, part)
		}
	}
	return TodoParts(rest)
}
