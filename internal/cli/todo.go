package cli

import (
	"context"

	"github.com/RoaringBitmap/roaring/v2"

	"capper/client"
	"capper/internal/ids"
)

// The type Todo holds the users who still need a decision of the service: a set of users, or parts of an audience
// expression.
type Todo struct {
	users    *roaring.Bitmap // nil: the audience is given by parts
	list     *IDs            // nil: dense ids; otherwise the bitmaps hold positions in the list
	parts    *client.Parts
	answered map[int]uint64 // number of users in the response, by Part.Index
}

// TodoUsers returns a Todo (users who need a decision) for a set of users with dense ids (32-bit numbers).
func TodoUsers(users *roaring.Bitmap) *Todo { return &Todo{users: users} }

// TodoIDs returns a Todo (users who need a decision) for all users in a list of ids.
func TodoIDs(list *IDs) *Todo {
	return &Todo{users: list.all(), list: list}
}

// The method List returns the list of ids, because the results contain positions in this list instead of users. If the
// results contain dense ids (32-bit numbers) instead of positions, List returns nil.
func (t *Todo) List() *IDs { return t.list }

// The method Again removes the unavailable users (without a decision) from the results r, and returns them as a Todo
// (users who need a decision).
func (t *Todo) Again(r *Results) *Todo { return &Todo{users: r.Retry(), list: t.list} }

// TodoParts returns a Todo (users who need a decision) for parts of an audience expression. The argument "scheme"
// describes the kind and key of the deployment's user ids. The argument "batch" is the maximum number of users in a
// call that retries unavailable users. The argument "parallel" is the number of simultaneous calls.
func TodoParts(parts *client.Parts, scheme *ids.Scheme, batch, parallel int) *Todo {
	t := &Todo{parts: parts, answered: map[int]uint64{}}
	if scheme.Kind() != ids.Dense {
		t.list = &IDs{UserList: &foundIDs{scheme: scheme}, Batch: batch, Parallel: parallel}
	}
	return t
}

// The method Users returns the number of users who still need a decision of the service.
func (t *Todo) Users() int64 {
	if t.users != nil {
		return int64(t.users.GetCardinality())
	}
	return int64(t.parts.Users)
}

// The method Ask requests decisions about all users of the Todo (the users who need a decision) one time, and adds the
// responses to r. The method Ask calls the function "report" after each response.
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

// The method Rest returns a Todo (users who need a decision) with the users who were in no response to Ask. Unavailable
// users (without a decision) are in a response, so Rest leaves them out.
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

// The method "found" returns the users whom the service found for an audience expression, if their ids are not dense
// 32-bit numbers.
func (t *Todo) found() (found *foundIDs, ok bool) {
	if t.list == nil {
		return nil, false
	}
	found, ok = t.list.UserList.(*foundIDs)
	return found, ok
}
