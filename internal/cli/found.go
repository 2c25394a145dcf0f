package cli

import (
	"bytes"
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sort"

	"github.com/RoaringBitmap/roaring/v2"

	"capper/client"
	"capper/internal/ids"
)

// foundIDs is the list of the users whom the service found for an audience expression. Each response about a part of
// the audience adds users to the list of found users. The users of one response are consecutive in the list.
type foundIDs struct {
	scheme  *ids.Scheme
	answers []answer // in the order of arrival
	users   int
}

// The type answer holds the users of one response about a part of the audience. The field "begin" is the position of
// the response's first user in the list of all found users.
type answer struct {
	part, begin int
	packed      []byte
	texts       []string // ids of the kind text
}

// The method "len" returns the number of users in the response.
func (a *answer) len(scheme *ids.Scheme) int {
	if width := scheme.Width(); width > 0 {
		return len(a.packed) / width
	}
	return len(a.texts)
}

// The method Scheme implements UserList.
func (f *foundIDs) Scheme() *ids.Scheme { return f.scheme }

// Len implements UserList.
func (f *foundIDs) Len() int { return f.users }

// The method "at" returns the response that contains the user at a position of the list, and the user's index in this
// response.
func (f *foundIDs) at(position int) (*answer, int) {
	i := sort.Search(len(f.answers), func(i int) bool { return f.answers[i].begin > position }) - 1
	return &f.answers[i], position - f.answers[i].begin
}

// AppendText implements UserList.
func (f *foundIDs) AppendText(dst []byte, position int) []byte {
	a, i := f.at(position)
	if width := f.scheme.Width(); width > 0 {
		return f.scheme.Unpack(dst, a.packed[width*i:width*i+width])
	}
	return append(dst, a.texts[i]...)
}

// AppendPacked implements UserList.
func (f *foundIDs) AppendPacked(dst []byte, position int) []byte {
	a, i := f.at(position)
	width := f.scheme.Width()
	return append(dst, a.packed[width*i:width*i+width]...)
}

// The method "take" adds the users of the response r to the list of found users. In the response r, the method "take"
// replaces the users by bitmaps of their positions in the list.
func (f *foundIDs) take(part int, r *client.FilterResult) error {
	a := answer{part: part, begin: f.users}
	var err error
	if f.scheme.Width() > 0 {
		err = f.takePacked(&a, r)
	} else {
		err = f.takeTexts(&a, r)
	}
	if err != nil {
		return fmt.Errorf("decode the response for part %d of the audience: %w", part, err)
	}
	f.answers, f.users = append(f.answers, a), f.users+a.len(f.scheme)
	return nil
}

// The type "listed" is a packed user id with its id image (64-bit keyed hash of the id).
type listed struct {
	image uint64
	id    []byte
}

func (l listed) compare(other listed) int {
	return cmp.Or(cmp.Compare(l.image, other.image), bytes.Compare(l.id, other.id))
}

// takePacked adds the users of a response with packed ids to the list of found users.
func (f *foundIDs) takePacked(a *answer, r *client.FilterResult) error {
	width, parser := f.scheme.Width(), f.scheme.NewParser()
	imaged := func(id []byte) listed {
		image, _ := parser.Packed(id)
		return listed{image, id}
	}
	var all []listed
	for _, packed := range append(slices.Collect(maps.Values(r.DeniedPacked)), r.AllowedPacked, r.UnavailablePacked) {
		if len(packed)%width != 0 {
			return fmt.Errorf(
				"a list of packed user ids has %d bytes, but its length must be a multiple of %d (bytes of one id)",
				len(packed), width)
		}
		for id := range slices.Chunk(packed, width) {
			all = append(all, imaged(id))
		}
	}
	slices.SortFunc(all, listed.compare)
	a.packed = make([]byte, 0, width*len(all))
	for i := range all {
		a.packed = append(a.packed, all[i].id...)
	}
	of := func(packed []byte) *roaring.Bitmap {
		users := roaring.New()
		for id := range slices.Chunk(packed, width) {
			if i, known := slices.BinarySearchFunc(all, imaged(id), listed.compare); known {
				users.Add(uint32(a.begin + i))
			}
		}
		return users
	}
	r.AllowedBitmap, r.ReplayedBitmap = of(r.AllowedPacked), of(r.ReplayedPacked)
	r.UnavailableBitmap = of(r.UnavailablePacked)
	r.DeniedBitmaps = make(map[string]*roaring.Bitmap, len(r.DeniedPacked))
	for limit, packed := range r.DeniedPacked {
		r.DeniedBitmaps[limit] = of(packed)
	}
	for i := range r.Waves {
		r.Waves[i].Bitmap = of(r.Waves[i].Packed)
	}
	return nil
}

// takeTexts adds the users of a response with text ids to the list of found users.
func (f *foundIDs) takeTexts(a *answer, r *client.FilterResult) error {
	images := map[string]uint64{}
	add := func(id string) (err error) {
		if images[id], err = f.scheme.Parse([]byte(id)); err == nil {
			a.texts = append(a.texts, id)
		}
		return err
	}
	for _, list := range [][]string{r.AllowedIDs, r.UnavailableIDs} {
		for _, id := range list {
			if err := add(id); err != nil {
				return err
			}
		}
	}
	for i := range r.DeniedIDs {
		if err := add(r.DeniedIDs[i].UserID); err != nil {
			return err
		}
	}
	slices.SortFunc(a.texts, func(a, b string) int { return cmp.Compare(images[a], images[b]) })
	positions := make([]uint32, len(a.texts))
	for i := range positions {
		positions[i] = uint32(a.begin + i)
	}
	placeTexts(r, a.texts, positions)
	return nil
}

// inOrder yields the given positions of the list in the order of the audience's parts, because the store keeps users in
// this order.
func (f *foundIDs) inOrder(users *roaring.Bitmap) iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		answers := slices.Clone(f.answers)
		slices.SortStableFunc(answers, func(a, b answer) int { return cmp.Compare(a.part, b.part) })
		for i := range answers {
			end := uint32(answers[i].begin + answers[i].len(f.scheme))
			each := users.Iterator()
			each.AdvanceIfNeeded(uint32(answers[i].begin))
			for each.HasNext() && each.PeekNext() < end {
				if !yield(each.Next()) {
					return
				}
			}
		}
	}
}
