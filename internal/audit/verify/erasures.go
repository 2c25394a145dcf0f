package verify

import (
	"context"
	"errors"
	"slices"

	"capper/internal/audit"
	"capper/internal/objects"
)

// sameIDs returns an error if the user ids in an erasure have another kind or key than the ids of the archive.
func (s *work) sameIDs(e *audit.Erasure) error {
	ids, err := e.IDs()
	if err != nil {
		return err
	}
	return ids.Same(s.archive.IDs())
}

// The method "erasures" checks the documents that record erasures of users. Verify does not report a missing number of
// an erasure, because the upload may be pending, or the service may have rejected the request.
func (s *work) erasures(ctx context.Context, list []objects.Object) {
	numbers := map[string][]uint64{}
	for _, o := range list {
		instance, n, ok := audit.ParseErasedKey(o.Key)
		if !ok {
			continue // the object does not belong to an audit; readInventory reports it
		}
		raw, err := s.archive.Source().Read(ctx, o.Key, o.SizeBytes)
		if errors.Is(err, objects.ErrNotFound) {
			continue
		}
		numbers[instance] = append(numbers[instance], n)
		var erasure audit.Erasure
		if err == nil {
			err = audit.Unseal(raw, &erasure)
		}
		if err == nil {
			err = s.sameIDs(&erasure)
		}
		switch {
		case err != nil:
			s.find(Finding{Kind: Damage, Key: o.Key, Text: err.Error()})
		case erasure.Key != "" && erasure.Key != o.Key:
			s.find(Finding{Kind: Disagrees, Key: o.Key, Text: "this is another erasure: " + erasure.Key})
		}
	}
	for instance, found := range numbers {
		slices.Sort(found)
		if missing := found[len(found)-1] - uint64(len(found)); missing > 0 {
			s.report.note("%d of the %d erasures of instance %s are missing: rejected, still being uploaded, or "+
				"removed",
				missing, found[len(found)-1], instance)
		}
	}
}
