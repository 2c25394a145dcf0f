package cli

import (
	"bufio"
	"context"
	"io"
	"iter"
	"sync"

	"github.com/RoaringBitmap/roaring/v2"
	"golang.org/x/sync/errgroup"

	"capper/client"
	"capper/internal/ids"
)

// UserList is a list of user ids of a kind other than dense (32-bit numbers). The first position in the list is 0. The
// type *ingest.UserList implements the interface UserList, too.
type UserList interface {
	Scheme() *ids.Scheme
	Len() int
	AppendText(dst []byte, position int) []byte   // appends the canonical text of an id
	AppendPacked(dst []byte, position int) []byte // appends the packed form of an id, for kinds with a packed form
}

// IDs is a list of user ids of a kind other than dense (32-bit numbers), for the API calls of a command. The command
// represents each user by the position of the user's id in the list, so that a bitmap can hold a set of users. The list
// has the ids in the order in which the store keeps the users, so that calls are fast.
type IDs struct {
	UserList
	Batch    int // maximum number of users in a call
	Parallel int // number of simultaneous calls
}

// textBytes is the maximum total size in bytes of the text ids in a call: half of the maximum request body of 16 MiB.
const textBytes = 8 << 20

// The method "all" returns a bitmap of all positions in the list of ids.
func (l *IDs) all() *roaring.Bitmap {
	users := roaring.New()
	users.AddRange(0, uint64(l.Len()))
	return users
}

// The method "write" writes the ids at the given positions of the list, one id per line.
func (l *IDs) write(to io.Writer, users *roaring.Bitmap) error {
	out := bufio.NewWriterSize(to, 1<<16)
	var line []byte
	for position := range l.inOrder(users) {
		line = append(l.AppendText(line[:0], int(position)), '\n')
		if _, err := out.Write(line); err != nil {
			return err
		}
	}
	return out.Flush()
}

// inOrder yields the given positions of the list of ids. inOrder uses the order in which the store keeps the users.
func (l *IDs) inOrder(users *roaring.Bitmap) iter.Seq[uint32] {
	if found, ok := l.UserList.(*foundIDs); ok {
		return found.inOrder(users)
	}
	return roaring.Values(users)
}

// The method "filter" makes filter calls about the users at the given positions of the list of ids. The argument "each"
// is a function that receives one response after another, with bitmaps of positions in the list.
func (l *IDs) filter(ctx context.Context, api *client.Client, request client.FilterRequest, users *roaring.Bitmap,
	each func(*client.FilterResult) error) error {
	return l.call(ctx, users, func(ctx context.Context, positions []uint32) (int, func() error, error) {
		call := request
		n := l.give(&call.IDs, &call.Packed, positions)
		result, err := api.Filter(ctx, &call)
		if err != nil {
			return 0, nil, err
		}
		l.place(result, call.IDs, positions[:n])
		return n, func() error { return each(result) }, nil
	})
}

// The method "call" makes several simultaneous API calls about the users at the given positions of the list. The
// argument "one" is a function that makes one API call about the users at the first positions of its argument. The
// function "one" returns the number n of these users, and a function "done" that processes the response. The functions
// "done" of two API calls never run at the same time.
func (l *IDs) call(ctx context.Context, users *roaring.Bitmap,
	one func(ctx context.Context, positions []uint32) (n int, done func() error, err error)) error {
	var mu sync.Mutex
	calls, within := errgroup.WithContext(ctx)
	calls.SetLimit(l.Parallel)
	client.SplitBitmap(users, l.Batch, func(part *roaring.Bitmap) bool {
		calls.Go(func() error {
			for positions := part.ToArray(); len(positions) > 0; {
				n, done, err := one(within, positions)
				if err != nil {
					return err
				}
				mu.Lock()
				if err = within.Err(); err == nil {
					err = done()
				}
				mu.Unlock()
				if err != nil {
					return err
				}
				positions = positions[n:]
			}
			return nil
		})
		return within.Err() == nil
	})
	return calls.Wait()
}

// The method "give" writes ids of the list to a request, beginning with the first of the given positions, until the
// request is full. The method "give" returns the number of written ids.
func (l *IDs) give(texts *[]string, packed **client.Packed, positions []uint32) (n int) {
	if width := l.Scheme().Width(); width > 0 {
		p := &client.Packed{Bytes: make([]byte, 0, width*len(positions)), Width: width}
		for _, position := range positions {
			p.Bytes = l.AppendPacked(p.Bytes, int(position))
		}
		*packed = p
		return len(positions)
	}
	bytes := 0
	for ; n < len(positions) && bytes < textBytes; n++ {
		text := l.AppendText(nil, int(positions[n]))
		bytes += 2*len(text) + 3 // quotes in a text are escaped
		*texts = append(*texts, string(text))
	}
	return n
}

// The method "place" replaces the users in a response by bitmaps of the users' positions in the list.
func (l *IDs) place(r *client.FilterResult, texts []string, positions []uint32) {
	if texts != nil {
		placeTexts(r, texts, positions)
		return
	}
	r.AllowedBitmap, r.ReplayedBitmap = among(positions, r.AllowedBitmap), among(positions, r.ReplayedBitmap)
	r.UnavailableBitmap = among(positions, r.UnavailableBitmap)
	for limit, users := range r.DeniedBitmaps {
		r.DeniedBitmaps[limit] = among(positions, users)
	}
	for i := range r.Waves {
		r.Waves[i].Bitmap = among(positions, r.Waves[i].Bitmap)
	}
}

// placeTexts works like the method place, for a response with text ids.
func placeTexts(r *client.FilterResult, texts []string, positions []uint32) {
	at := make(map[string]uint32, len(texts))
	for i, text := range texts {
		at[text] = positions[i]
	}
	of := func(texts []string) *roaring.Bitmap {
		users := roaring.New()
		for _, text := range texts {
			if position, known := at[text]; known {
				users.Add(position)
			}
		}
		return users
	}
	r.AllowedBitmap, r.ReplayedBitmap, r.UnavailableBitmap = of(r.AllowedIDs), of(r.ReplayedIDs), of(r.UnavailableIDs)
	denied := map[string][]string{}
	for i := range r.DeniedIDs {
		denied[r.DeniedIDs[i].Limit] = append(denied[r.DeniedIDs[i].Limit], r.DeniedIDs[i].UserID)
	}
	r.DeniedBitmaps = map[string]*roaring.Bitmap{}
	for limit, texts := range denied {
		r.DeniedBitmaps[limit] = of(texts)
	}
	for i := range r.Waves {
		r.Waves[i].Bitmap = of(r.Waves[i].IDs)
	}
}

// The function "among" converts positions of ids in a request to positions in the list of all ids. The argument "whole"
// maps positions: the user at position i of the request has the position whole[i] in the list.
func among(whole []uint32, positions *roaring.Bitmap) *roaring.Bitmap {
	found := make([]uint32, 0, positions.GetCardinality())
	for each := positions.Iterator(); each.HasNext(); {
		found = append(found, whole[each.Next()])
	}
	return roaring.BitmapOf(found...)
}

// The method Release makes calls that release the recorded sends of all users in the list. The argument "each" is a
// function that receives one response after another.
func (l *IDs) Release(ctx context.Context, api *client.Client, request client.ReleaseRequest,
	each func(*client.ReleaseResult) error) error {
	return l.call(ctx, l.all(), func(ctx context.Context, positions []uint32) (int, func() error, error) {
		call := request
		n := l.give(&call.IDs, &call.Packed, positions)
		result, err := api.Release(ctx, &call)
		return n, func() error { return each(result) }, err
	})
}

// The method Texts returns all ids of the list.
func (l *IDs) Texts() []string {
	texts := make([]string, l.Len())
	for i := range texts {
		texts[i] = string(l.AppendText(nil, i))
	}
	return texts
}
