package cli

import (
	"context"

	"github.com/RoaringBitmap/roaring/v2"

	"capper/client"
	"capper/internal/ids"
)

// Todo holds the users who are not decided yet: a set of users, or parts of an audience that the service computes.
type Todo struct {
	users    *roaring.Bitmap // nil if the audience is given by parts
	list     *IDs            // nil: the ids are dense; else users and results have positions in the list
	parts    *client.Parts
	answered map[int]uint64 // number of answered users by Part.Index
}

// TodoUsers returns a Todo for a set of users.
func TodoUsers(users *roaring.Bitmap) *Todo { return &Todo{users: users} }

// TodoIDs returns a Todo for all ids of a list.
func TodoIDs(list *IDs) *Todo {
	return &Todo{users: list.all(), list: list}
}

// List returns the list whose positions the results hold, or nil if they hold dense ids.
func (t *Todo) List() *IDs { return t.list }

// Again returns a Todo for those of the users whom r has as unavailable, and removes them from r.
func (t *Todo) Again(r *Results) *Todo { return &Todo{users: r.Retry(), list: t.list} }

// TodoParts returns a Todo for parts of an audience, in a deployment whose ids have the scheme. The numbers are those
// of the calls for users who were unavailable: the users of a call, and calls at one time.
func TodoParts(parts *client.Parts, scheme *ids.Scheme, batch, parallel int) *Todo {
	t := &Todo{parts: parts, answered: map[int]uint64{}}
	if scheme.Kind() != ids.Dense {
		t.list = &IDs{UserList: &foundIDs{scheme: scheme}, Batch: batch, Parallel: parallel}
	}
	return t
}

// Users returns the number of users in the Todo.
func (t *Todo) Users() int64 {
	if t.users != nil {
		return int64(t.users.GetCardinality())
	}
	return int64(t.parts.Users)
}

// Ask asks for all users once and adds the answers to r. Ask calls report after each answer.
func (t *Todo) Ask(ctx context.Context, api *client.Client, request client.FilterRequest, r *Results,
	report func()) error {
	add := func(batch *client.FilterRequest, result *client.FilterResult) error {
		if batch.Audience != nil {
			part := batch.Audience.Part.Index
			if found, ok := t.found(); ok {
				if err := found.take(part, result); err != nil {
					return err
				}
			}
			t.answered[part] = uint64(result.Summary.Requested)
		}
		r.Add(result)
		report()
		return nil
	}
	if t.users == nil {
		return api.FilterParts(ctx, &request, t.parts, add)
	}
	if t.list != nil {
		return t.list.filter(ctx, api, request, t.users, func(result *client.FilterResult) error {
			return add(&request, result)
		})
	}
	request.Bitmap = t.users
	return api.FilterAll(ctx, &request, add)
}

// Rest returns the users for whom Ask got no answer at all, not even unavailable.
func (t *Todo) Rest(r *Results) *Todo {
	if t.users != nil {
		return &Todo{users: r.Missing(t.users), list: t.list}
	}
	rest := &Todo{list: t.list, answered: map[int]uint64{}}
	rest.parts = &client.Parts{Generation: t.parts.Generation, Users: t.parts.Users}
	for _, part := range t.parts.List {
		users, answered := t.answered[part.Part.Index]
		if answered {
			rest.parts.Users -= min(users, rest.parts.Users)
		} else {
			rest.parts.List = append(rest.parts.List, part)
		}
	}
	return rest
}

// found returns the list of the users of an audience whose ids are not dense.
func (t *Todo) found() (found *foundIDs, ok bool) {
	if t.list == nil {
		return nil, false
	}
	found, ok = t.list.UserList.(*foundIDs)
	return found, ok
}
