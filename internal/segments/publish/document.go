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

// fence rewrites current.json with unchanged content but different bytes, so that publishers notice the Collector
// (command gc). fence returns the new ETag. A publisher that read current.json before this rewrite must read it again
// before it can replace the object, because the ETag is new. If current.json does not exist, the error of fence is
// ErrNothingLive.
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

// lookTimeout limits the time for reading back an object after an attempt to write it.
const lookTimeout = 10 * time.Second

// swap replaces an object by compare-and-swap and then reads the object back; the bytes of each writer are unique. If
// the response to the write was lost, the retried request fails because the first request changed the object. swap then
// reads the object and finds its own bytes. Reading back also detects a store that confirmed the write but kept the old
// object.
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
			return newTag, nil // another process has replaced it since
		case err != nil && !missing:
			return "", fmt.Errorf("it is unknown whether object %s was replaced: %w", key, err)
		case missing && tag != "":
			return "",
				&objects.StorageError{Err: fmt.Errorf(
					"%s: the storage confirmed the write of %s, but did not keep the object",
					at.Name(),
					key)}
		}
	}
	return "",
		&objects.StorageError{Err: fmt.Errorf(
			"%s: the storage confirmed the write of %s %d times, but did not keep the object",
			at.Name(), key, storePasses)}
}

// afterFailure is for a request to replace an object that returned an error: it reads the object, because the store may
// have replaced it nevertheless.
func afterFailure(ctx context.Context, at objects.Location, key string, body []byte, err error) (newTag string,
	_ error) {
	look, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookTimeout)
	defer cancel()
	now, nowTag, readErr := at.ReadTagged(look, key, "")
	switch {
	case readErr == nil && bytes.Equal(now, body):
		return nowTag, nil
	case readErr != nil && !errors.Is(readErr, objects.ErrNotFound) && !errors.Is(err, objects.ErrLostRace):
		return "", fmt.Errorf("%w; it is unknown whether object %s was replaced: %w", err, key, readErr)
	}
	return "", err
}
