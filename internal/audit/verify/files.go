package verify

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path"
	"runtime"
	"strings"
	"time"

	"capper/internal/audit"
	"capper/internal/audit/archive"
	"capper/internal/capping"
	"capper/internal/objects"
	"capper/internal/parallel"
)

// An inventory groups the objects of an audit location by type.
type inventory struct {
	index, records, policies, erased, open []objects.Object
}

// readInventory lists the audit location and reports objects that do not belong to an audit. The method readInventory
// lists open files first, and complete files before the index. If a writer completes a file during the listing, the
// file therefore appears in at least one of the lists.
func (s *work) readInventory(ctx context.Context) (inv inventory, err error) {
	list := func(prefix string) []objects.Object {
		if err != nil {
			return nil
		}
		var found []objects.Object
		found, err = s.archive.Source().List(ctx, prefix)
		return found
	}
	inv.open = list(audit.OpenPrefix)
	inv.records = list(audit.RecordsPrefix)
	inv.policies, inv.erased = list(audit.PoliciesPrefix), list(audit.ErasedPrefix)
	inv.index = list(audit.IndexPrefix)
	for _, o := range list("") {
		if !isOurs(o.Key) && !isTemporary(o.Key) && o.Key != objects.ProbeKey {
			s.find(Finding{Kind: Stranger, Key: o.Key, Text: "the object does not belong to any audit"})
		}
	}
	return inv, err
}

// isTemporary reports whether an object at the audit location is a temporary file of a running or killed writer.
func isTemporary(key string) bool {
	name := path.Base(key)
	return strings.HasPrefix(name, objects.TempPrefix) || strings.HasSuffix(name, ".lock")
}

// isOurs reports whether an object key has the form of a key in an audit.
func isOurs(key string) bool {
	folder, rest, _ := strings.Cut(key, "/")
	switch folder + "/" {
	case audit.IndexPrefix:
		return archive.IsIndexKey(key)
	case audit.RecordsPrefix:
		day, name, _ := strings.Cut(rest, "/")
		sum := strings.TrimSuffix(name, audit.FileExtension)
		raw, err := hex.DecodeString(sum)
		return err == nil && len(raw) == sha256.Size && audit.RecordsKey(day, sum) == key
	case audit.PoliciesPrefix:
		return strings.HasSuffix(rest, ".yaml") && !strings.Contains(rest, "/")
	case audit.ErasedPrefix:
		_, _, ok := audit.ParseErasedKey(key)
		return ok
	case audit.OpenPrefix:
		return true // spool directories with their lock files are below this prefix
	}
	return false
}

func (s *work) find(f Finding) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.report.find(f)
}

// The method "files" checks every object of the audit location, and counts the audit records.
func (s *work) files(ctx context.Context) error {
	inv, err := s.readInventory(ctx)
	if err != nil {
		return err
	}
	entries := make([]*archive.Entry, len(inv.index))
	parallel.AtMost(readsAtOnce, len(inv.index), func(i int) { entries[i] = s.entry(ctx, inv.index[i].Key) })
	dropped, damaged, err := s.archive.Dropped(ctx) // read last, because compactions note files first
	if err != nil {
		return err
	}
	for _, fault := range damaged {
		s.find(Finding{Kind: Damage, Text: fault.Error()})
	}
	series := newSeries(dropped)
	byKey := map[string]bool{}
	var wanted []*archive.Entry
	for _, e := range entries {
		if e == nil {
			continue
		}
		byKey[e.Key] = true
		series.add(e)
		if e.Recovered || e.Records+e.Lost == 0 ||
			(e.To >= s.query.Since && (s.query.Until == 0 || e.From < s.query.Until)) {
			wanted = append(wanted, e)
		}
	}
	faults := make([]error, len(wanted))
	parallel.AtMost(runtime.GOMAXPROCS(0)+1, len(wanted), func(i int) { faults[i] = s.rolled(ctx, wanted[i]) })
	if err := errors.Join(faults...); err != nil {
		return err
	}
	for _, o := range inv.open {
		if strings.HasSuffix(o.Key, setAside) {
			s.find(Finding{Kind: Damage, Key: o.Key, Text: "a service found this file damaged, uploaded the records " +
				"before the damage, and set the file aside"})
		}
		if strings.HasSuffix(o.Key, audit.FileExtension) {
			if err := s.open(ctx, o.Key, series); err != nil {
				return err
			}
		}
	}
	for _, o := range inv.records {
		if !byKey[o.Key] && isOurs(o.Key) {
			s.unindexed(ctx, o, series)
		}
	}
	series.report(s.report)
	return s.documents(ctx, inv)
}

// The constant setAside is the ending of the names that the journal gives to damaged audit files.
const setAside = audit.FileExtension + ".damaged"

// readsAtOnce is the number of small objects that verify reads in parallel.
const readsAtOnce = 16

// The method entry reads the index entry of an audit file. The result of the method entry is nil if the index entry is
// damaged or was removed.
func (s *work) entry(ctx context.Context, key string) *archive.Entry {
	if !archive.IsIndexKey(key) {
		return nil
	}
	raw, err := s.archive.Source().Read(ctx, key, objects.MaxDocumentBytes)
	if errors.Is(err, objects.ErrNotFound) || ctx.Err() != nil {
		return nil
	}
	var e *archive.Entry
	if err == nil {
		e, err = archive.ParseEntry(key, raw)
	}
	if err != nil {
		s.find(Finding{Kind: Damage, Key: key, Text: err.Error()})
		return nil
	}
	return e
}

// The method "rolled" checks the complete ("rolled") audit file that an index entry names, and reports faults of the
// file. The method "rolled" returns an error only if the check could not run.
func (s *work) rolled(ctx context.Context, e *archive.Entry) error {
	raw, err := s.archive.Source().Read(ctx, e.Key, e.Bytes)
	if errors.Is(err, objects.ErrNotFound) {
		now := s.entry(ctx, e.IndexKey)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case now == nil: // the file was removed, too, or the fault is already reported
			return nil
		case now.Key != e.Key: // rewritten meanwhile
			return s.rolled(ctx, now)
		}
		s.find(Finding{Kind: Missing, Key: e.Key, Instance: e.Instance, At: e.First, Records: e.Records,
			Text: fmt.Sprintf("file %d of instance %s, with %d records, is missing", e.Number, e.Instance,
				e.Records)})
		s.miss(e.From, e.To)
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var storage *objects.StorageError
	if errors.As(err, &storage) {
		return err
	}
	if err == nil {
		if sum := sha256.Sum256(raw); hex.EncodeToString(sum[:]) != e.SHA256 {
			err = errors.New("audit file does not have the SHA-256 checksum of its index entry")
		}
	}
	var summary *audit.Summary
	if err == nil {
		summary, err = s.read(ctx, raw, false)
	}
	if err != nil {
		s.find(Finding{Kind: Damage, Key: e.Key, Instance: e.Instance, At: e.First, Text: err.Error()})
		s.miss(e.From, e.To)
		return nil
	}
	s.compare(ctx, e, summary.Entry(raw), summary.IndexKey())
	s.mu.Lock()
	defer s.mu.Unlock()
	s.report.Files++
	s.report.Bytes += e.Bytes
	if e.Recovered {
		s.report.note("instance %s ended while it wrote file %d: calls of its last second may be missing", e.Instance,
			e.Number)
	}
	return nil
}

// The method compare reports a finding if a stored index entry differs from the entry that was computed from the audit
// file.
func (s *work) compare(ctx context.Context, e *archive.Entry, is audit.Entry, indexKey string) {
	want, err := audit.Seal(is)
	stored, readErr := s.archive.Source().Read(ctx, e.IndexKey, objects.MaxDocumentBytes)
	if err != nil || readErr != nil || indexKey == e.IndexKey && bytes.Equal(want, stored) {
		return
	}
	if now, err := archive.ParseEntry(e.IndexKey, stored); err == nil && now.Key != e.Key {
		return // rewritten meanwhile
	}
	s.find(Finding{Kind: Disagrees, Key: e.IndexKey, Instance: e.Instance,
		Text: "the index entry differs from its file: " + e.Key})
}

// The method read reads the frames (entries) of an audit file, counts the records, and reports lost records.
func (s *work) read(ctx context.Context, raw []byte, open bool) (*audit.Summary, error) {
	r, err := audit.NewReader(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	if err := r.Header().IDs.Same(s.archive.IDs()); err != nil {
		return nil, err
	}
	summary := audit.NewSummary(r.Header())
	for {
		frame, err := r.Next()
		var torn *audit.TornError
		switch {
		case errors.Is(err, io.EOF) && (open || r.Ended()), open && errors.As(err, &torn):
			return summary, nil
		case errors.Is(err, io.EOF):
			return nil, errors.New("audit file has no end marker")
		case err != nil:
			return nil, err
		case frame.Record != nil:
			summary.Add(frame)
			s.record(ctx, frame.Record)
		case frame.Gap != nil:
			summary.Add(frame)
			s.miss(frame.Gap.From, frame.Gap.To)
			s.find(Finding{Kind: Loss, Instance: r.Header().Instance, Records: frame.Gap.Lost,
				At: frame.Gap.From.Time(),
				Text: fmt.Sprintf("instance %s lost %d records of calls from %s to %s", r.Header().Instance,
					frame.Gap.Lost,
					frame.Gap.From.Time().Format(milliseconds), frame.Gap.To.Time().Format(milliseconds))})
		default:
			if frame.End.Recovered {
				s.miss(summary.Last(), frame.End.Closed)
			}
			summary.Add(frame)
		}
	}
}

// The method "miss" notes a time span in which audit records may be missing. Verify needs the time spans with missing
// records, because the missing record of a release may be the reason why a later send was allowed.
func (s *work) miss(from, to capping.Instant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unsure = append(s.unsure, span{from - longestCall, to})
}

// The constant milliseconds is the time layout of RFC 3339 with milliseconds.
const milliseconds = "2006-01-02T15:04:05.000Z07:00"

// The method record counts an audit record, when verify reads all files for the first time.
func (s *work) record(ctx context.Context, r *audit.Record) {
	if r.At < s.query.Since || s.query.Until != 0 && r.At >= s.query.Until {
		return
	}
	s.erased.Apply(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.report.Records++
	s.count(ctx, r)
}

// The method "unindexed" reports an audit file that no index entry names, unless a writer uploads the index entry in
// time.
func (s *work) unindexed(ctx context.Context, o objects.Object, all *series) {
	raw, err := s.archive.Source().Read(ctx, o.Key, o.SizeBytes)
	if err != nil {
		return
	}
	r, err := audit.NewReader(bytes.NewReader(raw))
	if err != nil {
		s.find(Finding{Kind: Damage, Key: o.Key, Text: err.Error()})
		return
	}
	if all.replaced(r.Header()) {
		s.report.note("%s was left by a compaction that did not end: the next one removes it", o.Key)
		return
	}
	if e := s.entrySince(ctx, o, r.Header()); e != nil {
		all.add(e)
		return
	}
	text := fmt.Sprintf("this file, number %d of instance %s, has no index entry, so its records are never read",
		r.Header().Number, r.Header().Instance)
	s.find(Finding{Kind: Unindexed, Key: o.Key, Instance: r.Header().Instance, Text: text})
}

// entrySince looks for the index entry of an audit file that had no index entry in the listing. If the audit file is
// new, entrySince waits for the index entry, because the writer stores the entry after the file. If the file still has
// no index entry, entrySince returns nil.
func (s *work) entrySince(ctx context.Context, o objects.Object, h audit.Header) *archive.Entry {
	key := audit.IndexKey(path.Base(path.Dir(o.Key)), h.Instance, h.Number)
	for {
		if raw, err := s.archive.Source().Read(ctx, key, objects.MaxDocumentBytes); err == nil {
			if e, err := archive.ParseEntry(key, raw); err == nil && e.Key == o.Key {
				return e
			}
			return nil // the entry of another file, or a damaged entry, which the method entry reports
		}
		if time.Since(o.ChangedAt) >= s.config.Uploading {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// The method "documents" checks the documents at the audit location: policies, erasures, and the kind of user ids.
func (s *work) documents(ctx context.Context, inv inventory) error {
	for _, o := range inv.policies {
		version := strings.TrimSuffix(strings.TrimPrefix(o.Key, audit.PoliciesPrefix), ".yaml")
		if _, err := s.archive.Policy(ctx, version); err != nil && isOurs(o.Key) {
			s.find(Finding{Kind: Damage, Key: o.Key, Text: err.Error()})
		}
	}
	s.erasures(ctx, inv.erased)
	if err := s.sameIDsDocument(ctx); err != nil && ctx.Err() == nil {
		s.find(Finding{Kind: Damage, Key: audit.IDsKey, Text: err.Error()})
	}
	return ctx.Err()
}

// sameIDsDocument checks the document that describes the kind and key of the user ids at the audit location.
func (s *work) sameIDsDocument(ctx context.Context) error {
	found, err := archive.ReadIDs(ctx, s.archive.Source())
	if err != nil {
		return err
	}
	return found.Same(s.archive.IDs())
}
