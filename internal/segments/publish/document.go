package publish

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"capper/internal/objects"
	"capper/internal/segments"
)

// fence gives current.json other bytes that say the same: everybody who has
// read it before loses the race to replace it, and has to look again.
// ErrNothingLive when there is none.
func fence(ctx context.Context, at objects.Location) (newTag string, err error) {
	for {
		live, tag, err := segments.ReadPointer(ctx, at, "")
		if err != nil {
			return "", err
		}
		if tag, err = swap(ctx, at, segments.CurrentKey, live.Encode(), tag); !errors.Is(err, objects.ErrLostRace) {
			return tag, err
		}
	}
}

// lookTimeout bounds the look at what became of a document.
const lookTimeout = 10 * time.Second

// swap replaces a document whose bytes nobody else writes, and looks what became of it:
// an answer may be lost, and what is sent again then finds its own success in its way; and
// a store may say that it has a document and keep the one before.
func swap(ctx context.Context, at objects.Location, key string, body []byte, tag string) (newTag string, err error) {
	for range storePasses {
		if newTag, err = at.Replace(ctx, key, body, tag); err != nil {
			return afterFailure(ctx, at, key, body, err)
		}
		now, nowTag, err := at.ReadTagged(ctx, key, "")
		switch missing := errors.Is(err, objects.ErrNotFound); {
		case err == nil && bytes.Equal(now, body):
			return nowTag, nil
		case err == nil && nowTag != tag:
			return newTag, nil // somebody else has replaced it since
		case err != nil && !missing:
			return "", fmt.Errorf("it is unknown whether %s was replaced: %w", key, err)
		case missing && tag != "":
			return "", &objects.StorageError{Err: fmt.Errorf("%s: the store accepted %s but did not keep it",
				at.Name(),
				key)}
		}
	}
	return "", &objects.StorageError{Err: fmt.Errorf("%s: the store accepted %s %d times but did not keep it",
		at.Name(), key, storePasses)}
}

// afterFailure looks whether a document was replaced although that failed.
func afterFailure(ctx context.Context, at objects.Location, key string, body []byte, err error) (newTag string,
	_ error) {
	look, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookTimeout)
	defer cancel()
	now, nowTag, readErr := at.ReadTagged(look, key, "")
	switch {
	case readErr == nil && bytes.Equal(now, body):
		return nowTag, nil
	case readErr != nil && !errors.Is(readErr, objects.ErrNotFound) && !errors.Is(err, objects.ErrLostRace):
		return "", fmt.Errorf("%w; it is unknown whether %s was replaced: %w", err, key, readErr)
	}
	return "", err
}
