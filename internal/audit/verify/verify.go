package verify

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"capper/internal/audit/archive"
	"capper/internal/capping"
)

// Config holds the settings of a verification. Segments is required.
type Config struct {
	Since, Until capping.Instant // bounds of the checked calls; 0: none. Files without such calls are not read
	// Segments reads a segments generation (published version). If Segments returns an error, verify does not check
	// sends that need this generation.
	Segments   func(ctx context.Context, generation string) (capping.Segments, error)
	Generation string // segments generation for all records; "": each record's generation
	Events     int    // maximum number of events in memory; default DefaultEvents
	OnlyFiles  bool   // do not check sends against limits
	// Name returns the text for a user whose id is not a dense 32-bit number. The default is archive.ImageName. Verify
	// never calls Name twice at the same time.
	Name archive.Name
	// AcceptedUntil is the end of the period in which operators accept sends beyond a limit. Verify counts the accepted
	// sends, and does not report them as findings. If AcceptedUntil is zero, every send beyond a limit is a finding.
	AcceptedUntil capping.Instant
	Store         *Store // store to compare with the audit (Until must then be 0); nil: no comparison
	// Uploading is the maximum age of an audit file without an index entry, because a service uploads the file before
	// the entry. If Uploading is 0, every file without an index entry is a finding.
	Uploading time.Duration
}

// DefaultEvents is the default of Config.Events, the number of events (effects of calls on users) in memory. The
// default number of events takes 200 MB of memory, or 400 MB if ids are not dense 32-bit numbers.
const DefaultEvents = 1 << 24

// Check verifies the files of an audit location and the sends in its records. If the verification could not finish,
// Check returns an error, and the report holds the findings so far.
func Check(ctx context.Context, a *archive.Archive, config Config) (*Report, error) {
	config.Events = cmp.Or(config.Events, DefaultEvents)
	if config.Name == nil {
		config.Name = archive.ImageName
	}
	query := archive.Query{Since: config.Since, Until: config.Until}
	w := &work{archive: a, query: query, config: config, policyOf: map[string]uint16{},
		report: &Report{Findings: []Finding{}, Notes: []string{}}}
	erased, err := a.Erased(ctx)
	if err != nil {
		w.report.find(Finding{Kind: Damage, Text: err.Error()})
		w.report.note("sends are not checked: the erased users are unknown")
		w.config.OnlyFiles, w.config.Store = true, nil
		erased = &archive.Erased{}
	}
	w.erased, w.report.Erased = erased, erased.Users()
	if err := w.all(ctx); err != nil {
		return w.report, err
	}
	if w.report.Unjudged > 0 {
		w.report.note("%d of %d sends were not checked", w.report.Unjudged, w.report.Sends)
	}
	slices.SortStableFunc(w.report.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Key, b.Key), a.At.Compare(b.At),
			cmp.Compare(a.Sequence, b.Sequence))
	})
	return w.report, nil
}

// The method "all" runs the whole verification: of the audit files, of the recorded sends, and of the store.
func (s *work) all(ctx context.Context) error {
	var store *comparison
	if s.config.Store != nil {
		s.report.Store = &StoreReport{}
		store = &comparison{Store: s.config.Store, report: s.report.Store, places: map[string]int{}}
		if err := store.begin(ctx, s); err != nil {
			return err
		}
		s.since, s.now, s.expected = s.query.Since, store.Now, store.ask
	}
	if err := s.files(ctx); err != nil {
		return err
	}
	if !s.config.OnlyFiles || store != nil {
		if err := s.judge(ctx); err != nil {
			return fmt.Errorf("judge sends: %w", err)
		}
	}
	if store == nil {
		return nil
	}
	if err := store.conclude(ctx, s); err != nil {
		return fmt.Errorf("confirm missing sends: %w", err)
	}
	return nil
}
