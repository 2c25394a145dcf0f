package ingest

import (
	"bytes"
	"cmp"
	"slices"
	"sync"
	"unicode"
	"unicode/utf8"

	"capper/internal/ids"
	"capper/internal/segments"
	"capper/internal/segments/ingest/format"
)

// The type Twins describes pairs of text ids that differ only in upper and lower case, or in blanks around the id.
// capper treats such ids as different users, although they often belong to one person.
type Twins struct {
	// IDs is the number of ids that have a twin (other id with the same plain form) and are not in the plain form
	// themselves. The plain form of an id is in lower case and without blanks around the id.
	IDs int64 `json:"ids"`
	// A and B are an example: a pair of ids with the same plain form. If the texts are no longer known, A and B are
	// empty.
	A string `json:"a,omitempty"`
	B string `json:"b,omitempty"`
}

// A twinFinder collects text ids that are not in the plain form (lower case, without blanks around the id). The
// twinFinder also finds ids with the same plain form. The zero twinFinder collects no texts. A twinFinder is safe for
// concurrent use.
type twinFinder struct {
	scheme *ids.Scheme // nil: the ids are no texts

	mu   sync.Mutex
	odd  []oddText
	sort int // number of the first entries that have no repetitions
}

// An oddText is a text id that is not in the plain form (lower case, without blanks around the id).
type oddText struct {
	plain, image uint64 // images of the plain form and of the text
	text         string // "" if too many texts are known
}

// keptOdd is the maximum number of ids for which a twinFinder keeps the text, for examples in a report.
const keptOdd = 1 << 16

// newTwinFinder returns a twinFinder, which finds ids that differ only in case or blanks. If the ids are not texts, the
// returned twinFinder collects and finds nothing.
func newTwinFinder(scheme *ids.Scheme) *twinFinder {
	if scheme.Kind() == ids.Text {
		return &twinFinder{scheme: scheme}
	}
	return &twinFinder{}
}

// The method "add" collects the ids of a block that are not in the plain form (lower case, without blanks around the
// id). For a nil twinFinder, the method "add" does nothing.
func (f *twinFinder) add(b *format.Block) {
	if f == nil || f.scheme == nil {
		return
	}
	var found []oddText
	for i, image := range b.Images {
		text := b.Texts.At(i)
		if isPlain(text) {
			continue
		}
		plain, err := f.scheme.Parse(bytes.ToLower(bytes.TrimSpace(text)))
		if err == nil && plain != image {
			found = append(found, oddText{plain, image, string(text)})
		}
	}
	if len(found) == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.odd = append(f.odd, found...)
	if len(f.odd) >= max(2*f.sort, 2*keptOdd) {
		f.compact()
	}
}

// isPlain reports whether a text id is certainly in the plain form: in lower case and without blanks around the id.
func isPlain(text []byte) bool {
	for _, c := range text {
		if c >= utf8.RuneSelf || c >= 'A' && c <= 'Z' {
			return false
		}
	}
	first, _ := utf8.DecodeRune(text)
	last, _ := utf8.DecodeLastRune(text)
	return !unicode.IsSpace(first) && !unicode.IsSpace(last)
}

// The method "compact" removes repeated ids from the collected ids. The caller of the method "compact" holds the lock
// f.mu.
func (f *twinFinder) compact() {
	slices.SortFunc(f.odd, func(a, b oddText) int {
		return cmp.Or(cmp.Compare(a.plain, b.plain), cmp.Compare(a.image, b.image), cmp.Compare(b.text, a.text))
	})
	f.odd = slices.CompactFunc(f.odd, func(a, b oddText) bool { return a.image == b.image })
	f.sort = len(f.odd)
	for i := keptOdd; i < len(f.odd); i++ {
		f.odd[i].text = ""
	}
}

// The method "find" returns the collected ids that differ from another id only in case or blanks. The other id is a
// collected id, or an id in one of the given dictionaries.
func (f *twinFinder) find(known ...*segments.Dictionary) (twins Twins) {
	f.compact()
	for first := 0; first < len(f.odd); {
		end := first + 1
		for end < len(f.odd) && f.odd[end].plain == f.odd[first].plain {
			end++
		}
		plain := slices.ContainsFunc(known, func(d *segments.Dictionary) bool {
			_, ok := d.Number(f.odd[first].plain)
			return ok
		})
		if plain || end > first+1 {
			twins.note(f.odd[first:end], plain)
		}
		first = end
	}
	return twins
}

// The method "note" counts text ids with the same plain form (lower case, without blanks around the id). If a known id
// equals this plain form, the argument "plain" is true.
func (t *Twins) note(odd []oddText, plain bool) {
	t.IDs += int64(len(odd))
	switch a := odd[0].text; {
	case t.A != "" || a == "":
	case plain:
		t.A, t.B = a, string(bytes.ToLower(bytes.TrimSpace([]byte(a))))
	default:
		t.A, t.B = min(a, odd[1].text), max(a, odd[1].text)
	}
}
