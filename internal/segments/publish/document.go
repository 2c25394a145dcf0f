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

// swap replaces a document whose bytes nobody else writes, and looks what
// became of it when it is not told so: an answer may be lost, and what is sent
// again then finds its own success in its way.
func swap(ctx context.Context, at objects.Location, key string, body []byte, tag string) (newTag string, err error) {
	newTag, err = at.Replace(ctx, key, body, tag)
	if err == nil {
		return newTag, nil
	}
	look, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookTimeout)
	defer cancel()
	now, nowTag, readErr := at.ReadTagged(look, key, "")
	switch {
	case readErr == nil && bytes.Equal(now, body):
		return nowTag, nil
	case readErr != nil && !errors.Is(readErr, objects.ErrNotFound) && !errors.Is(err, objects.ErrLostRace):
		return "", fmt.Errorf("%w; whether %s was replaced is not known: %w", err, key, readErr)
	}
	return "", err
}
