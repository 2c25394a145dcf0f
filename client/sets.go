package client

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"slices"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"capper/client/api"
)

// SetChange adds users to a set and removes users from it. At least one of the lists Add and Remove of a SetChange
// must contain a user, and no user may be in both lists. Repeated users count once.
type SetChange struct {
	Add    []uint32
	Remove []uint32
	// AddIDs and RemoveIDs name the users by ids of every kind, such as UUIDs, in place of Add and Remove.
	AddIDs    []string
	RemoveIDs []string
	// AddImages and RemoveImages name the users by the images (64-bit numbers) of their ids, where ids are not dense.
	// The caller need not know the id that belongs to an image (api.MemberChangeOfID.Image).
	AddImages    []uint64
	RemoveImages []uint64
	// At is the time when the users asked for the change; zero: the time of the call. Among several changes of a user,
	// the change with the latest time takes effect. A caller that repeats changes of a set after a long outage should
	// therefore fill the field At.
	At time.Time
}

// setCalls is the smallest number of users for which a call that changes a set contains a bitmap instead of ids.
const setCalls = 1000

// ChangeSet adds users to a set and removes users from it. After ChangeSet returns without an error, all later
// decisions of all service instances use an addition. On instances that did not receive the call, a removal takes
// effect within about a second. No crash loses the change. ChangeSet needs an API key with the scope lists. If the
// change has more than api.MaxSetUsers users, ChangeSet makes several API calls. If ChangeSet makes several API calls,
// its result counts the users of all calls, and has the time of the last call.
//
// After an error of ChangeSet, some users of the change may have been added or removed. If ChangeSet returns a result
// together with an error, the result counts the users of the API calls with status 200. A caller may safely repeat
// ChangeSet. ChangeSet does not retry after CodeTooManyRecords, which means that the set has its maximum number of
// changes. Only a new build of the set that contains the changes makes room for further changes.
func (c *Client) ChangeSet(ctx context.Context, set string, change SetChange) (*api.SetChanged, error) {
	bodies, err := change.bodies()
	if err != nil {
		return nil, fmt.Errorf("change set %q: %w", set, err)
	}
	sum := &api.SetChanged{Set: set}
	for _, body := range bodies {
		if err := c.changeSet(ctx, set, body, sum); err != nil {
			return sum, err
		}
	}
	return sum, nil
}

// The method "bodies" returns the request bodies of the API calls that a change of a set needs.
func (change *SetChange) bodies() ([]any, error) {
	if len(change.AddIDs)+len(change.RemoveIDs) > 0 {
		return change.bodiesOfIDs()
	}
	if len(change.AddImages)+len(change.RemoveImages) > 0 {
		return change.bodiesOfImages()
	}
	add, remove := roaring.BitmapOf(change.Add...), roaring.BitmapOf(change.Remove...)
	if both := roaring.And(add, remove); !both.IsEmpty() {
		return nil, fmt.Errorf("user %d must not be in both Add and Remove", both.Minimum())
	}
	if add.IsEmpty() && remove.IsEmpty() {
		return nil, errors.New("at least one user must be in Add or Remove")
	}
	var bodies []any
	for _, list := range []struct {
		users *roaring.Bitmap
		body  func(*roaring.Bitmap) *api.SetChange
	}{{add, addition}, {remove, removal}} {
		SplitBitmap(list.users, api.MaxSetUsers, func(part *roaring.Bitmap) bool {
			body := list.body(part)
			body.At = change.at()
			bodies = append(bodies, body)
			return true
		})
	}
	return bodies, nil
}

// The method "at" returns the time that the change of a set states, or nil if the time of the call applies.
func (change *SetChange) at() *time.Time {
	if change.At.IsZero() {
		return nil
	}
	return &change.At
}

func addition(users *roaring.Bitmap) *api.SetChange {
	if users.GetCardinality() < setCalls {
		return &api.SetChange{Add: users.ToArray()}
	}
	return &api.SetChange{AddBitmap: &api.Bitmap{Bitmap: users}}
}

func removal(users *roaring.Bitmap) *api.SetChange {
	if users.GetCardinality() < setCalls {
		return &api.SetChange{Remove: users.ToArray()}
	}
	return &api.SetChange{RemoveBitmap: &api.Bitmap{Bitmap: users}}
}

// changeOfIDs is the request body of a call that changes a set and names users by strings.
type changeOfIDs struct {
	Add          []string   `json:"add,omitempty"`
	Remove       []string   `json:"remove,omitempty"`
	AddImages    []string   `json:"add_images,omitempty"`
	RemoveImages []string   `json:"remove_images,omitempty"`
	At           *time.Time `json:"at,omitempty"`
}

// bodiesOfIDs returns the request bodies of the API calls for a change of a set that names users by string ids. If the
// change fits into one API call, the service detects a user who is both added and removed. If the change needs several
// API calls, the client itself detects a user who is both added and removed, by the text of the id.
func (change *SetChange) bodiesOfIDs() ([]any, error) {
	if len(change.Add)+len(change.Remove)+len(change.AddImages)+len(change.RemoveImages) > 0 {
		return nil, errors.New("AddIDs and RemoveIDs must not be combined with Add, Remove, AddImages or RemoveImages")
	}
	if id, both := inBoth(change.AddIDs, change.RemoveIDs); both {
		return nil, fmt.Errorf("user %q must not be in both AddIDs and RemoveIDs", id)
	}
	return bodiesOf(change.AddIDs, change.RemoveIDs, func(add, remove []string) any {
		return &changeOfIDs{Add: add, Remove: remove, At: change.at()}
	}), nil
}

// bodiesOfImages returns the request bodies of the API calls for a change of a set that names users by id images
// (64-bit hashes).
func (change *SetChange) bodiesOfImages() ([]any, error) {
	if len(change.Add)+len(change.Remove) > 0 {
		return nil, errors.New("AddImages and RemoveImages must not be combined with Add or Remove")
	}
	add, remove := imageTexts(change.AddImages), imageTexts(change.RemoveImages)
	if image, both := inBoth(add, remove); both {
		return nil, fmt.Errorf(
			"id image (64-bit number of an id) %s must not be in both AddImages and RemoveImages", image)
	}
	return bodiesOf(add, remove, func(add, remove []string) any {
		return &changeOfIDs{AddImages: add, RemoveImages: remove, At: change.at()}
	}), nil
}

func imageTexts(images []uint64) []string {
	texts := make([]string, len(images))
	for i, image := range images {
		texts[i] = fmt.Sprintf("%016x", image)
	}
	return texts
}

// inBoth returns a text that is in both lists a and b, if there is one.
func inBoth(list, other []string) (text string, both bool) {
	known := make(map[string]bool, len(list))
	for _, text := range list {
		known[text] = true
	}
	for _, text := range other {
		if known[text] {
			return text, true
		}
	}
	return "", false
}

// bodiesOf returns one or several request bodies for a change of a set. If bodiesOf returns several bodies, each body
// either only adds users or only removes users.
func bodiesOf(add, remove []string, body func(add, remove []string) any) (bodies []any) {
	if len(add)+len(remove) <= api.MaxSetUsers {
		return []any{body(add, remove)}
	}
	for part := range slices.Chunk(add, api.MaxSetUsers) {
		bodies = append(bodies, body(part, nil))
	}
	for part := range slices.Chunk(remove, api.MaxSetUsers) {
		bodies = append(bodies, body(nil, part))
	}
	return bodies
}

// changeSet makes one API call that changes a set, and adds the result of the call to the argument "sum".
func (c *Client) changeSet(ctx context.Context, set string, body any, sum *api.SetChanged) error {
	var answer api.SetChanged
	passing := func(err error) bool { return Passing(err) && !HasCode(err, CodeTooManyRecords) }
	if err := c.callWhile(ctx, passing, "POST", setPath(set), body, &answer); err != nil {
		return fmt.Errorf("change set %q: %w", set, err)
	}
	sum.At = answer.At
	sum.Added += answer.Added
	sum.Removed += answer.Removed
	sum.Superseded += answer.Superseded
	return nil
}

func setPath(set string) string { return "/v1/sets/" + url.PathEscape(set) + "/members" }

// The method Sets lists the sets of the current generation (published version), and the configured sets that no build
// has published. For each set, Sets returns the number of live changes (changes by API calls). The method Sets needs an
// API key with the scope read or lists.
func (c *Client) Sets(ctx context.Context) (*api.Sets, error) {
	return read[api.Sets](ctx, c, "/v1/sets")
}

// SetMembers iterates over the changes that API calls made to a set since the given time, in the order of the users.
// The zero time selects all changes. To iterate over the users that the published build of the set contains, callers
// use Members instead. The iteration ends after an error.
func (c *Client) SetMembers(ctx context.Context, set string, since time.Time) iter.Seq2[*api.MemberChange, error] {
	return changesIn(ctx, c, set, since, func(page *api.SetMembers) ([]api.MemberChange, *string) {
		return page.Changes, page.Next
	})
}

// SetMemberIDs works like SetMembers, in a deployment whose ids are uint64, uuid or text. SetMemberIDs returns the
// changes in the order of the users' id images (64-bit hashes of ids).
func (c *Client) SetMemberIDs(
	ctx context.Context, set string, since time.Time,
) iter.Seq2[*api.MemberChangeOfID, error] {
	return changesIn(ctx, c, set, since, func(page *api.SetMemberStrings) ([]api.MemberChangeOfID, *string) {
		return page.Changes, page.Next
	})
}

// changesIn iterates over the changes of a set on all pages. The argument "of" of changesIn is a function that returns
// the changes on a page, and the cursor of the next page.
func changesIn[Page, Change any](ctx context.Context, c *Client, set string, since time.Time,
	of func(*Page) ([]Change, *string)) iter.Seq2[*Change, error] {
	return func(yield func(*Change, error) bool) {
		parameters := url.Values{"limit": {"10000"}}
		if !since.IsZero() {
			parameters.Set("since", since.UTC().Format(api.Milliseconds))
		}
		for {
			page, err := read[Page](ctx, c, setPath(set)+"?"+parameters.Encode())
			if err != nil {
				yield(nil, err)
				return
			}
			changes, next := of(page)
			for i := range changes {
				if !yield(&changes[i], nil) {
					return
				}
			}
			if next == nil {
				return
			}
			parameters.Set("cursor", *next)
		}
	}
}

// NotStored returns the users in an error of ChangeSet whose changes the service may not have stored, or nil if the
// error names no users.
func NotStored(err error) []uint32 {
	var refused *Error
	if errors.As(err, &refused) {
		return refused.Unavailable
	}
	return nil
}

// NotStoredIDs works like NotStored, for a change of a set that names users in the fields AddIDs or RemoveIDs.
func NotStoredIDs(err error) []string {
	var refused *Error
	if errors.As(err, &refused) {
		return refused.UnavailableIDs
	}
	return nil
}
