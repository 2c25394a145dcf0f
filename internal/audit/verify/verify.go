package verify

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"capper/internal/audit/archive"
	"capper/internal/capping"
)

// Config is how much is verified, and by what. Segments is required.
type Config struct {
	Since, Until capping.Instant // records of calls; 0: open. Files without any are not read
	// Segments reads a generation. An error is that it cannot be had: what needs it is not judged.
	Segments   func(ctx context.Context, generation string) (capping.Segments, error)
	Generation string // in the place of all that records name; "": each its own
	Events     int    // how many events of users are in memory at once; default DefaultEvents
	OnlyFiles  bool   // sends are not judged
	// AcceptedUntil is until when over-sends are known and accepted: they are counted and are no findings. 0: none are.
	AcceptedUntil capping.Instant
	Store         *Store // is compared with the audit; nil: it is not. It goes without Until
}

// DefaultEvents is 200 MB.
const DefaultEvents = 1 << 24

// Check verifies a location. The error is that it could not be finished; what was found so
// far is in the report.
func Check(ctx context.Context, a *archive.Archive, config Config) (*Report, error) {
	config.Events = cmp.Or(config.Events, DefaultEvents)
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

// all checks files and sends, and compares them with the store.
func (s *work) all(ctx context.Context) error {
	var store *comparison
	if s.config.Store != nil {
		s.report.Store = &StoreReport{}
		store = &comparison{Store: s.config.Store, report: s.report.Store}
		if err := store.begin(ctx, s); err != nil {
			return err
		}
		s.since, s.now, s.owed = s.query.Since, store.Now, store.ask
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
