package ingest

import (
	"bytes"
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"capper/internal/dictionary"
	"capper/internal/ids"
	"capper/internal/parallel"
	"capper/internal/segments"
	"capper/internal/segments/ingest/format"
)

// The struct "back" collects, from all inputs of a build, the data for converting user numbers to ids. To convert a
// number to a UUID, capper needs the 64 bits that the image (64-bit number that stands for the id) lacks. To convert a
// number to a text id, capper needs the text. The struct "back" also finds different ids that have the same image. The
// struct "back" is safe for concurrent use.
type back struct {
	scheme *ids.Scheme
	shards [1 << partBits]backShard
}

// A backShard contains the ids whose images (64-bit numbers that stand for ids) have the same upper bits.
type backShard struct {
	mu     sync.Mutex
	clean  []backEntry // ascending, each image once
	added  []backEntry // entries added since clean was made
	texts  []byte      // of the entries
	shared []SharedImage
	pairs  int64
}

// A backEntry contains the image of an id (64-bit number that stands for the id). The field rest contains the 64 bits
// of a UUID that the image lacks, or the position of a text id.
type backEntry struct{ image, rest uint64 }

// A SharedImage names two ids that have the same image (64-bit number that stands for the id). capper counts the sends
// of two such ids together.
type SharedImage struct {
	A string `json:"a"`
	B string `json:"b"`
}

// sharedSamples is the maximum number of pairs of ids with the same image that the report of a build shows.
const sharedSamples = 20

// compactAt is the number of ids in a backShard at which the method "compact" sorts these ids for the first time.
const compactAt = 1 << 12

// newBack returns an empty back. If the argument "names" is false, the build need not convert user numbers to ids, and
// newBack returns nil.
func newBack(scheme *ids.Scheme, names bool) *back {
	if !names {
		return nil
	}
	return &back{scheme: scheme}
}

// The method "add" adds the ids of a block of rows to the back. For a nil back, the method "add" does nothing.
func (k *back) add(b *format.Block) {
	if k == nil {
		return
	}
	for i, image := range b.Images {
		s := &k.shards[image>>(64-partBits)]
		s.mu.Lock()
		if k.scheme.Kind() == ids.UUID {
			s.added = append(s.added, backEntry{image, b.Rests[i]})
		} else {
			text := b.Texts.At(i)
			s.added = append(s.added, backEntry{image, uint64(len(s.texts))<<8 | uint64(len(text)-1)})
			s.texts = append(s.texts, text...)
		}
		if len(s.added) >= max(compactAt, len(s.clean)/2) {
			k.compact(s)
		}
		s.mu.Unlock()
	}
}

func (s *backShard) text(e backEntry) []byte { return s.texts[e.rest>>8:][:e.rest&0xff+1] }

// The method "compact" sorts the ids of a shard by their images (64-bit numbers that stand for ids), and drops repeated
// ids. If several different ids have the same image, the method "compact" keeps one of these ids.
func (k *back) compact(s *backShard) {
	clean, added := s.clean, s.added
	if len(added) == 0 {
		return
	}
	compare := s.byRest
	if k.scheme.Kind() == ids.Text {
		compare = s.byText
	}
	slices.SortFunc(added, compare)
	kept := make([]backEntry, 0, len(clean)+len(added))
	for len(clean)+len(added) > 0 {
		var e backEntry
		if len(added) == 0 || len(clean) > 0 && clean[0].image <= added[0].image {
			e, clean = clean[0], clean[1:]
		} else {
			e, added = added[0], added[1:]
		}
		switch last := len(kept) - 1; {
		case last < 0 || kept[last].image != e.image:
			kept = append(kept, e)
		case compare(kept[last], e) != 0:
			k.noteShared(s, kept[last], e)
		}
	}
	if len(kept) < cap(kept)*9/10 {
		kept = slices.Clone(kept)
	}
	if s.clean, s.added = kept, nil; k.scheme.Kind() == ids.Text {
		s.packTexts()
	}
}

func (s *backShard) byRest(a, b backEntry) int {
	switch {
	case a.image < b.image, a.image == b.image && a.rest < b.rest:
		return -1
	case a == b:
		return 0
	}
	return 1
}

func (s *backShard) byText(a, b backEntry) int {
	if a.image != b.image {
		return cmp.Compare(a.image, b.image)
	}
	return bytes.Compare(s.text(a), s.text(b))
}

// packTexts frees the memory of texts whose ids the method "compact" has dropped.
func (s *backShard) packTexts() {
	size := 0
	for _, e := range s.clean {
		size += len(s.text(e))
	}
	packed := make([]byte, 0, size)
	for i, e := range s.clean {
		text := s.text(e)
		s.clean[i].rest = uint64(len(packed))<<8 | uint64(len(text)-1)
		packed = append(packed, text...)
	}
	s.texts = packed
}

// noteShared records that two ids have the same image (64-bit number that stands for the id).
func (k *back) noteShared(s *backShard, a, b backEntry) {
	pair := SharedImage{k.show(s, a), k.show(s, b)}
	if slices.Contains(s.shared, pair) {
		return
	}
	if s.pairs++; len(s.shared) < sharedSamples {
		s.shared = append(s.shared, pair)
	}
}

func (k *back) show(s *backShard, e backEntry) string {
	if k.scheme.Kind() == ids.Text {
		return string(s.text(e))
	}
	text, err := k.scheme.Back(nil, e.image, e.rest)
	if err != nil { // a test has narrowed the images
		return fmt.Sprintf("image %016x rest %016x", e.image, e.rest)
	}
	return string(text)
}

// The method "finish" compacts all shards. The result "count" of the method "finish" is the number of pairs of ids with
// the same image (64-bit number that stands for the id). The result "pairs" of the method "finish" lists the first of
// these pairs.
func (k *back) finish() (count int64, pairs []SharedImage) {
	if k == nil {
		return 0, nil
	}
	parallel.AtMost(runtime.GOMAXPROCS(0), len(k.shards), func(i int) { k.compact(&k.shards[i]) })
	for i := range k.shards {
		count += k.shards[i].pairs
		pairs = append(pairs, k.shards[i].shared...)
	}
	return count, pairs[:min(len(pairs), sharedSamples)]
}

// The method "number" returns the dictionary of all ids, and the Back, which converts user numbers to ids. The method
// "number" also frees the memory of the collected ids.
func (k *back) number() (*segments.Dictionary, *segments.Back, error) {
	n, texts := 0, int64(0)
	for i := range k.shards {
		n += len(k.shards[i].clean)
		texts += int64(len(k.shards[i].texts))
	}
	names := dictionary.RestsSize(uint32(n))
	if k.scheme.Kind() == ids.Text {
		names = dictionary.TextsSize(uint32(n), texts)
	}
	w, err := newNumberWriter(k.scheme.Kind(), n, names)
	if err != nil {
		return nil, nil, err
	}
	for i := range k.shards {
		s := &k.shards[i]
		for _, e := range s.clean {
			var text []byte
			if k.scheme.Kind() == ids.Text {
				text = s.text(e)
			}
			if err := w.Add(e.image, e.rest, text); err != nil {
				return nil, nil, err
			}
		}
		*s = backShard{}
		if i%(len(k.shards)/8) == 0 {
			release(n)
		}
	}
	return w.Close()
}
