package journal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"capper/internal/audit"
	"capper/internal/capping"
	"capper/internal/objects"
)

// placeTimeout limits the time for storing a document at the audit location. If storing takes longer than
// placeTimeout, the journal stores the document on the local disk instead, and uploads it later.
const placeTimeout = 2 * time.Second

// SetPolicy stores the policy of a configuration version at the audit location. The argument "text" of SetPolicy is the
// policy as YAML, as the method PolicyText of config.Config returns it. Callers must call SetPolicy before they record
// the first call that was decided with this configuration version.
func (j *Journal) SetPolicy(ctx context.Context, version string, text []byte) {
	if j == nil {
		return
	}
	text = audit.SealPolicy(text)
	if !objects.IsURL(j.To) { // readers find the policy beside the open file
		ctx, cancel := context.WithTimeout(ctx, placeTimeout)
		defer cancel()
		if err := j.claim(ctx); err == nil {
			if _, err := j.place.Put(ctx, audit.PolicyKey(version), text); err == nil {
				return
			}
		}
	}
	j.flushing.Lock()
	j.writing.policies[version] = text
	j.flushing.Unlock()
	_ = j.flush(time.Time{}, false) // the state keeps the error, and the flush is retried
	j.deliverSoon()
}

// Erase hides all earlier audit records of the user from readers. Erase returns as soon as the erasure is durable at
// the audit location. While the location is unavailable, Erase returns as soon as the erasure is durable on the local
// disk.
func (j *Journal) Erase(ctx context.Context, user capping.UserID) error {
	if j == nil {
		return nil
	}
	number := j.erasures.Add(1)
	key := audit.ErasedKey(j.instance, number)
	erasure := audit.NewErasure(j.IDs, []capping.UserID{user}, j.Clock().UTC())
	erasure.Key = key
	body, err := audit.Seal(erasure)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, placeTimeout)
	defer cancel()
	atPlace := j.claim(ctx)
	if atPlace == nil {
		_, atPlace = j.place.Put(ctx, key, body)
	}
	if atPlace == nil {
		return nil
	}
	j.flushing.Lock()
	err = j.writing.enter(true)
	j.flushing.Unlock()
	if err == nil {
		err = j.writing.store(fmt.Sprintf("%d%s", number, erasureExtension), body)
	}
	if err != nil {
		return fmt.Errorf("record the erasure of a user in the audit: %w", errors.Join(atPlace, err))
	}
	j.deliverSoon()
	return nil
}
