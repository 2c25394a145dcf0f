package ingest

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"

	"capper/internal/bitmap"
	"capper/internal/ids"
	"capper/internal/segments/ingest/format"
)

// A UserList contains the ids of input files whose ids are not dense (32-bit integers). The list has each id once, in
// the order of the images (64-bit numbers that stand for ids). The store also keeps users in buckets in the order of
// their images. Callers identify an id by its position in the list, counted from 0.
type UserList struct {
	scheme *ids.Scheme

	mu    sync.Mutex
	users []listed
	texts [][]byte // text ids, each after a byte with its length minus 1
}

// The type "listed" is an id in a UserList. For a UUID, the field "rest" is the 64 bits that the image lacks. For a
// text id, the field "rest" is the position of the text: an index into UserList.texts, and an offset.
type listed struct{ image, rest uint64 }

// offsetBits is the number of bits of the offset in the position of a text id (listed.rest).
const offsetBits = 40

// ReadUsers reads the ids of the inputs into a UserList; the ids must not be dense (32-bit integers). The caller of
// ReadUsers must call Check before it uses the UserList.
func (r *reader) ReadUsers(ctx context.Context, inputs []Input) (*UserList, error) {
	l := &UserList{scheme: r.cfg.Scheme}
	r.cfg.Names = true
	if err := r.read(ctx, inputs, l); err != nil {
		return nil, err
	}
	return l, l.sort()
}

func (l *UserList) isTable() bool { return false }

func (l *UserList) newSink() (sink, format.Names) { return &listSink{list: l}, nil }

func (l *UserList) addBitmap(*bitmap.Bitmap) error {
	return fmt.Errorf("a bitmap holds only dense ids (32-bit integers), but this deployment has ids of the kind %s",
		l.scheme.Kind())
}

// listSink collects the ids of one worker.
type listSink struct {
	list  *UserList
	users []listed
	texts []byte
}

func (s *listSink) add(b *format.Block) {
	for i, image := range b.Images {
		one := listed{image: image}
		switch s.list.scheme.Kind() {
		case ids.UUID:
			one.rest = b.Rests[i]
		case ids.Text:
			text := b.Texts.At(i)
			one.rest = uint64(len(s.texts))
			s.texts = append(append(s.texts, byte(len(text)-1)), text...)
		}
		s.users = append(s.users, one)
	}
}

func (s *listSink) flush() {
	l := s.list
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(s.texts) > 0 {
		chunk := uint64(len(l.texts)) << offsetBits
		for i := range s.users {
			s.users[i].rest |= chunk
		}
		l.texts = append(l.texts, s.texts)
	}
	if l.users = append(l.users, s.users...); len(l.users) == len(s.users) {
		l.users = s.users
	}
}

// The method "sort" sorts the ids of the list and drops repeated ids.
func (l *UserList) sort() error {
	rest := func(a, b listed) int { return cmp.Compare(a.rest, b.rest) }
	if l.scheme.Kind() == ids.Text {
		rest = func(a, b listed) int { return bytes.Compare(l.text(a), l.text(b)) }
	}
	slices.SortFunc(l.users, func(a, b listed) int {
		if a.image != b.image {
			return cmp.Compare(a.image, b.image)
		}
		return rest(a, b)
	})
	l.users = slices.CompactFunc(l.users, func(a, b listed) bool { return a.image == b.image && rest(a, b) == 0 })
	if len(l.users) >= math.MaxUint32 {
		return fmt.Errorf("the file has %d different ids, and at most %d are allowed", len(l.users), math.MaxUint32-1)
	}
	return nil
}

func (l *UserList) text(one listed) []byte {
	text := l.texts[one.rest>>offsetBits][one.rest&(1<<offsetBits-1):]
	return text[1 : 2+int(text[0])]
}

// The method Scheme returns the kind and the hash key of the ids.
func (l *UserList) Scheme() *ids.Scheme { return l.scheme }

// Len returns the number of ids.
func (l *UserList) Len() int { return len(l.users) }

// The method Image returns the image of the id at the given position in the list. An image is a 64-bit number that
// stands for an id.
func (l *UserList) Image(position int) uint64 { return l.users[position].image }

// AppendText appends the canonical text of the id at the given position in the list.
func (l *UserList) AppendText(dst []byte, position int) []byte {
	one := l.users[position]
	if l.scheme.Kind() == ids.Text {
		return append(dst, l.text(one)...)
	}
	dst, err := l.scheme.Back(dst, one.image, one.rest)
	if err != nil {
		panic(err) // only text ids and narrowed schemes have no way back
	}
	return dst
}

// AppendPacked appends the id at the given position of the list to dst, in packed (binary) form. AppendPacked panics
// for kinds of ids without a packed form.
func (l *UserList) AppendPacked(dst []byte, position int) []byte {
	one := l.users[position]
	dst, err := l.scheme.BackPacked(dst, one.image, one.rest)
	if err != nil {
		panic(err) // only text ids and narrowed schemes have no way back
	}
	return dst
}
