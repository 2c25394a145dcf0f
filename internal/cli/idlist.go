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

// UserList holds ids that are not dense, by positions from 0. An *ingest.UserList is one.
type UserList interface {
	Scheme() *ids.Scheme
	Len() int
	AppendText(dst []byte, position int) []byte   // the canonical text of an id
	AppendPacked(dst []byte, position int) []byte // the packed form of an id, of kinds that have one
}

// IDs is a list of ids that are not dense. A command knows the users by their positions in the list, so that sets of
// them are bitmaps. Calls have the users in the order of the list, which is that of the store.
type IDs struct {
	UserList
	Batch    int // users of a call
	Parallel int // calls at one time
}

// textBytes bounds the text ids of a call. A body may have 16 MiB.
const textBytes = 8 << 20

// all returns all positions.
func (l *IDs) all() *roaring.Bitmap {
	users := roaring.New()
	users.AddRange(0, uint64(l.Len()))
	return users
}

// write writes the ids at the positions, one a line.
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

// inOrder yields the positions in the order of the store.
func (l *IDs) inOrder(users *roaring.Bitmap) iter.Seq[uint32] {
	if found, ok := l.UserList.(*foundIDs); ok {
		return found.inOrder(users)
	}
	return roaring.Values(users)
}

// filter asks for the users at the positions. The function each gets the answers one after the other, with bitmaps of
// positions in the list.
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

// call makes calls about the users at the positions, several at one time. The function one makes a call about the first
// n of the positions; done takes the answer, one after the other.
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

// give sets the users of a call to the first ids of the positions, and returns their number.
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
		bytes += 2*len(text) + 3 // quotes in a text need an escape
		*texts = append(*texts, string(text))
	}
	return n
}

// place replaces the users of an answer by bitmaps of positions in the list.
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

// placeTexts sets the bitmaps of an answer with text ids.
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

// among returns the positions in the list of positions in a call, whose users have the positions whole.
func among(whole []uint32, positions *roaring.Bitmap) *roaring.Bitmap {
	found := make([]uint32, 0, positions.GetCardinality())
	for each := positions.Iterator(); each.HasNext(); {
		found = append(found, whole[each.Next()])
	}
	return roaring.BitmapOf(found...)
}

// Release releases the sends of all ids of the list. The function each gets the answers one after the other.
func (l *IDs) Release(ctx context.Context, api *client.Client, request client.ReleaseRequest,
	each func(*client.ReleaseResult) error) error {
	return l.call(ctx, l.all(), func(ctx context.Context, positions []uint32) (int, func() error, error) {
		call := request
		n := l.give(&call.IDs, &call.Packed, positions)
		result, err := api.Release(ctx, &call)
		return n, func() error { return each(result) }, err
	})
}

// Texts returns all ids of the list.
func (l *IDs) Texts() []string {
	texts := make([]string, l.Len())
	for i := range texts {
		texts[i] = string(l.AppendText(nil, i))
	}
	return texts
}
