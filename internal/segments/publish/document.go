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

// The function "fence" rewrites current.json with unchanged content but different bytes, and returns the new tag. If a
// publisher has read current.json before the fence, the new tag forces it to read current.json again before it can
// replace it. The new tag shows publishers that the Collector (command gc) is running. If current.json does not exist,
// the error is ErrNothingLive.
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

// lookTimeout is the maximum time for reading back an object after a failed write.
const lookTimeout = 10 * time.Second

// The function "swap" replaces an object by compare-and-swap, and then reads the object back. If the response to a
// write is lost, the retry of the request fails, because the first request has already changed the object. After such a
// failure, "swap" reads the object. If the object has the bytes of this writer, the write succeeded, because the bytes
// of each writer are unique. Reading back also detects a store that confirmed the write but did not keep the new
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
			return newTag, nil // another process has replaced the object since
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

// afterFailure reads an object after a failed request to replace it, because the store may have replaced the object
// nevertheless.
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
