package journal

import (
	"context"
	"errors"
	"fmt"

	"capper/internal/audit"
	"capper/internal/objects"
)

// The method claim ensures that all records at the audit location have the journal's kind and key of user ids. If the
// ids are not dense 32-bit numbers, the method claim stores a document that describes the ids, and returns every error.
// If the ids are dense, the method claim returns an error only if the document at the location describes other ids. If
// the audit location has ids of another kind or key, the error wraps an *audit.OtherIDsError. After the first
// successful check, further calls of claim do nothing.
func (j *Journal) claim(ctx context.Context) error {
	if j.claimed.Load() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, placeTimeout)
	defer cancel()
	found, err := j.idsOfPlace(ctx)
	if err == nil {
		err = found.Same(j.IDs)
	}
	switch {
	case err == nil:
		j.claimed.Store(true)
	case !j.IDs.Dense() || errors.As(err, new(*audit.OtherIDsError)):
		return fmt.Errorf("audit.to: %s: %w", j.To, err)
	}
	return nil
}

// idsOfPlace returns the kind and key of the user ids in the records at the audit location. If the audit location has
// no records, idsOfPlace stores the journal's kind and key at the location.
func (j *Journal) idsOfPlace(ctx context.Context) (audit.IDs, error) {
	found, named, err := j.namedIDs(ctx)
	if err != nil || named || j.IDs.Dense() {
		return found, err
	}
	policies, err := j.place.List(ctx, audit.PoliciesPrefix) // every journal stores its policy before its records
	if err != nil || len(policies) > 0 {
		return audit.IDs{}, err
	}
	body, err := j.IDs.Seal()
	if err != nil {
		return audit.IDs{}, err
	}
	_, err = j.place.Replace(ctx, audit.IDsKey, body, "")
	if err != nil && !errors.Is(err, objects.ErrLostRace) {
		return audit.IDs{}, err
	}
	found, _, err = j.namedIDs(ctx) // another journal may have been faster
	return found, err
}

// namedIDs reads the kind and key of user ids from the document at the audit location. The result "named" of namedIDs
// is false if the audit location has no document about its user ids.
func (j *Journal) namedIDs(ctx context.Context) (found audit.IDs, named bool, err error) {
	raw, err := j.place.Read(ctx, audit.IDsKey, objects.MaxDocumentBytes)
	if errors.Is(err, objects.ErrNotFound) {
		return audit.IDs{}, false, nil
	}
	if err == nil {
		found, err = audit.UnsealIDs(raw)
	}
	return found, true, err
}
