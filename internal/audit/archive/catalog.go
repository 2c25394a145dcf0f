package archive

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"capper/internal/audit"
	"capper/internal/capping"
	"capper/internal/objects"
	"capper/internal/parallel"
)

// An Entry is the index entry of a rolled (complete and uploaded) audit file, with the object key of the entry.
type Entry struct {
	audit.Entry
	IndexKey string
	From, To capping.Instant // the times First and Last of the index entry
	tokens   []capping.Token
}

// compareTokens compares two message tokens (hashes of message ids) by the order of their hex digits.
func compareTokens(a, b capping.Token) int { return bytes.Compare(a[:], b[:]) }

// readsAtOnce is the number of small objects that the archive reads in parallel.
const readsAtOnce = 16

// openFile is an audit file that a service instance is still writing to a directory.
type openFile struct {
	key      string
	instance string
	number   uint64
	bytes    int64
}

// A listing contains the audit files at a location: the open files and the index of the complete files.
type listing struct {
	entries []*Entry
	open    []openFile
	faults  []error // a *FileError for each damaged entry
}

// The method list finds the audit files that may hold records for a query. The method list looks for open files first,
// and reads the index second. A file that a writer closes and uploads in the meantime is therefore among the open
// files, in the index, or in both.
func (a *Archive) list(ctx context.Context, q Query) (listing, error) {
	open, err := a.listOpen(ctx)
	if err != nil {
		return listing{}, err
	}
	found, err := a.at.List(ctx, audit.IndexPrefix)
	if err != nil {
		return listing{}, fmt.Errorf("list the index: %w", err)
	}
	found = slices.DeleteFunc(found, func(o objects.Object) bool {
		place, ok := parseIndexKey(o.Key)
		return !ok || !q.mayBeOf(place.day)
	})
	entries, faults, err := a.readEntries(ctx, found)
	if err != nil {
		return listing{}, err
	}
	rolled := map[string]bool{}
	for _, e := range entries {
		rolled[fileName(e.Instance, e.Number)] = true
	}
	open = slices.DeleteFunc(open, func(f openFile) bool { return rolled[fileName(f.instance, f.number)] })
	entries = slices.DeleteFunc(entries, func(e *Entry) bool { return !q.mayHold(e) })
	return listing{entries, open, faults}, nil
}

func fileName(instance string, number uint64) string { return fmt.Sprintf("%s-%d", instance, number) }

func (a *Archive) listOpen(ctx context.Context) (open []openFile, err error) {
	found, err := a.at.List(ctx, audit.OpenPrefix)
	if err != nil {
		return nil, fmt.Errorf("list open files: %w", err)
	}
	for _, o := range found {
		instance, name, _ := strings.Cut(strings.TrimPrefix(o.Key, audit.OpenPrefix), "/")
		digits, isFile := strings.CutSuffix(name, audit.FileExtension)
		number, err := strconv.ParseUint(digits, 10, 64)
		if isFile && err == nil && audit.IsInstance(instance) {
			open = append(open, openFile{o.Key, instance, number, o.SizeBytes})
		}
	}
	return open, nil
}

// readEntries reads index entries of audit files, and skips entries that were removed since the listing.
func (a *Archive) readEntries(ctx context.Context, found []objects.Object) (entries []*Entry, damaged []error,
	err error) {
	entries, faults := make([]*Entry, len(found)), make([]error, len(found))
	parallel.AtMost(readsAtOnce, len(found), func(i int) { entries[i], faults[i] = a.entry(ctx, found[i]) })
	for _, fault := range faults {
		var about *FileError
		switch {
		case errors.As(fault, &about):
			damaged = append(damaged, fault)
		case fault != nil && !errors.Is(fault, objects.ErrNotFound):
			return nil, nil, fault
		}
	}
	return slices.DeleteFunc(entries, func(e *Entry) bool { return e == nil }), damaged, nil
}

// The method entry returns the index entry of an audit file, from memory if the archive has read the index entry
// before. An index entry changes only when a compaction rewrites the audit file. If a caller does not find the audit
// file under the key in the index entry, the caller reads the index entry again.
func (a *Archive) entry(ctx context.Context, o objects.Object) (*Entry, error) {
	a.mu.Lock()
	known := a.entries[o]
	a.mu.Unlock()
	if known != nil {
		return known, nil
	}
	e, err := a.readEntry(ctx, o.Key)
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.entries[o] = e
	return e, nil
}

func (a *Archive) readEntry(ctx context.Context, key string) (*Entry, error) {
	raw, err := a.at.Read(ctx, key, objects.MaxDocumentBytes)
	if err != nil {
		return nil, fmt.Errorf("index entry %s: %w", key, err)
	}
	e, err := ParseEntry(key, raw)
	if err != nil {
		return nil, &FileError{key, err}
	}
	return e, nil
}

// ParseEntry decodes and validates the index entry with the given object key.
func ParseEntry(key string, raw []byte) (*Entry, error) {
	e := &Entry{IndexKey: key}
	if err := audit.Unseal(raw, &e.Entry); err != nil {
		return nil, err
	}
	place, ok := parseIndexKey(key)
	switch {
	case !ok || place.instance != e.Instance || place.number != e.Number:
		return nil, fmt.Errorf(
			"audit index entry describes file %d of capper instance %q, but its object key names another file",
			e.Number, e.Instance)
	case e.Format != audit.Format && e.Format != audit.FormatImages:
		return nil, fmt.Errorf("audit index entry has format %d, but this version of capper reads formats %d and %d",
			e.Format, audit.Format, audit.FormatImages)
	case !isRecordsKey(e.Key, e.SHA256):
		return nil, fmt.Errorf("audit index entry: key %q is not the object key of an audit file", e.Key)
	}
	e.From, e.To = capping.InstantOf(e.First), capping.InstantOf(e.Last)
	for _, text := range e.Messages {
		var token capping.Token
		if n, err := hex.Decode(token[:], []byte(text)); len(text) != 2*len(token) || err != nil || n != len(token) {
			return nil, fmt.Errorf("audit index entry: message %q is not a message token (hash) in hexadecimal digits",
				text)
		}
		e.tokens = append(e.tokens, token)
	}
	e.Messages = nil
	if !slices.IsSortedFunc(e.tokens, compareTokens) {
		return nil, errors.New("audit index entry: the message tokens (hashes of message ids) must be sorted")
	}
	return e, nil
}

// indexPlace holds the day, the instance and the file number, which are in the object key of an index entry.
type indexPlace struct {
	day, instance string
	number        uint64
}

func parseIndexKey(key string) (p indexPlace, ok bool) {
	rest, inside := strings.CutPrefix(key, audit.IndexPrefix)
	day, name, _ := strings.Cut(rest, "/")
	name, isJSON := strings.CutSuffix(name, ".json")
	instance, digits, _ := strings.Cut(name, "-")
	number, err := strconv.ParseUint(digits, 10, 64)
	p = indexPlace{day, instance, number}
	return p, inside && isJSON && err == nil && audit.IsInstance(instance) && audit.IndexKey(day, instance,
		number) == key
}

// isRecordsKey reports whether an object key is the key of an audit file with the given SHA-256.
func isRecordsKey(key, sha256 string) bool {
	day, _, _ := strings.Cut(strings.TrimPrefix(key, audit.RecordsPrefix), "/")
	return len(sha256) == 64 && audit.RecordsKey(day, sha256) == key
}

// Entries returns the index entries of the rolled (complete) audit files that may hold records for a query, in the
// order of the files' first records. The result "damaged" of Entries holds a *FileError for each index entry that the
// archive cannot read.
func (a *Archive) Entries(ctx context.Context, q Query) (entries []*Entry, damaged []error, err error) {
	listed, err := a.list(ctx, q)
	if err != nil {
		return nil, nil, err
	}
	inOrder(listed.entries)
	return listed.entries, listed.faults, nil
}

// inOrder sorts index entries by the time of their first record.
func inOrder(entries []*Entry) {
	slices.SortFunc(entries, func(a, b *Entry) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.Instance, b.Instance), cmp.Compare(a.Number, b.Number))
	})
}

// IsIndexKey reports whether an object key has the form of an index entry's key.
func IsIndexKey(key string) bool {
	_, ok := parseIndexKey(key)
	return ok
}
