package publish

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"capper/internal/objects"
	"capper/internal/segments"
)

// leaseKey is the object key of the lease document. The lease document tells publishers whether a Collector (command
// gc) is removing objects.
const leaseKey = "gc.json"

// errCollecting reports that another Collector (command gc) is running.
var errCollecting = errors.New("another gc is running")

// LeaseError reports that a Collector (command gc) stopped removing objects because it was too slow to renew its lease
// (right to remove objects).
type LeaseError struct {
	Length time.Duration
	err    error // the slow operation
}

func (e *LeaseError) Error() string {
	return fmt.Sprintf("the lease in %s was lost, because it was not renewed within half of --lease %s: %v",
		leaseKey, e.Length, e.err)
}

// leaseDocument is the content of gc.json.
type leaseDocument struct {
	FormatVersion int `json:"format_version"`
	// Holder is a random name of the Collector (command gc) that holds the lease. If Holder is empty, no Collector
	// holds the lease.
	Holder string `json:"holder,omitempty"`
	// Renewals increases with each renewal, so that each version of the lease document has a different tag.
	Renewals int   `json:"renewals,omitempty"`
	LeaseMS  int64 `json:"lease_ms,omitempty"`
}

func (d *leaseDocument) encode() []byte {
	raw, err := json.Marshal(d)
	if err != nil {
		panic(fmt.Sprintf("encode a lease: %v", err)) // encoding these fields cannot fail
	}
	return append(raw, '\n')
}

// readLease reads gc.json. If the object gc.json does not exist, no Collector (command gc) holds the lease (right to
// remove objects).
func readLease(ctx context.Context, src objects.Source) (d leaseDocument, tag string, err error) {
	raw, tag, err := src.ReadTagged(ctx, leaseKey, "")
	if errors.Is(err, objects.ErrNotFound) {
		return d, "", nil
	}
	if err == nil {
		err = segments.DecodeDocument(raw, &d)
	}
	if err != nil {
		return d, "", fmt.Errorf("%s: %w", leaseKey, err)
	}
	return d, tag, nil
}

// A lease is the right to remove objects from a location; one Collector (command gc) at a time can hold this right. The
// holder renews the lease while it removes objects. Other processes treat the lease as expired if the holder has not
// renewed it for its full duration by the clock of the other process. After a renewal, the holder uses only the first
// half of the lease's duration. In the second half, the holder starts no requests, so that requests in flight can end.
type lease struct {
	at      objects.Location
	doc     leaseDocument
	tag     string
	renewed time.Time // start time of the last renewal
}

func (l *lease) length() time.Duration { return time.Duration(l.doc.LeaseMS) * time.Millisecond }

// takeLease takes the lease (right to remove objects) for a Collector (command gc). If the previous holder crashed,
// takeLease first waits until the old lease expires. If the previous holder still renews the lease, takeLease returns
// errCollecting.
func takeLease(ctx context.Context, at objects.Location, length time.Duration) (*lease, error) {
	holder, tag, err := readLease(ctx, at)
	if err == nil && holder.Holder != "" {
		tag, err = awaitLease(ctx, at, func(now leaseDocument) error {
			if now != holder {
				return errCollecting
			}
			return nil
		})
	}
	if err != nil {
		return nil, err
	}
	l := &lease{at: at, tag: tag}
	l.doc = leaseDocument{FormatVersion: segments.FormatVersion, Holder: rand.Text(),
		LeaseMS: max(length.Milliseconds(), 1)}
	l.renewed = time.Now()
	if l.tag, err = swap(ctx, at, leaseKey, l.doc.encode(), l.tag); errors.Is(err, objects.ErrLostRace) {
		err = errCollecting
	}
	return l, err
}

// awaitLease waits until no Collector (command gc) holds the lease (right to remove objects), or until the holder has
// not renewed the lease for its full duration. awaitLease passes each state of the lease to the function "seen". If the
// function "seen" returns an error, the wait ends. The returned tag is the object tag of gc.json.
func awaitLease(ctx context.Context, at objects.Location, seen func(leaseDocument) error) (tag string, err error) {
	var last leaseDocument
	var since time.Time
	for {
		now, tag, err := readLease(ctx, at)
		if err != nil || now.Holder == "" {
			return tag, err
		}
		if err := seen(now); err != nil {
			return "", err
		}
		length := time.Duration(now.LeaseMS) * time.Millisecond
		switch {
		case now != last:
			last, since = now, time.Now()
		case time.Since(since) > length:
			nobody := leaseDocument{FormatVersion: segments.FormatVersion}
			if tag, err = swap(ctx, at, leaseKey, nobody.encode(), tag); !errors.Is(err, objects.ErrLostRace) {
				return tag, err
			}
		}
		if err := pause(ctx, min(max(length/20, time.Millisecond), time.Second)); err != nil {
			return "", fmt.Errorf("wait for another run of segmentbuild gc to end: %w", err)
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// The method "use" returns a context for one request by the holder of the lease (right to remove objects). If a quarter
// of the lease's duration has passed, the method "use" first renews the lease.
func (l *lease) use(ctx context.Context) (context.Context, context.CancelFunc, error) {
	if began := time.Now(); began.Sub(l.renewed) > l.length()/4 {
		limited, cancel := l.limit(ctx)
		defer cancel()
		l.doc.Renewals++
		tag, err := swap(limited, l.at, leaseKey, l.doc.encode(), l.tag)
		if err != nil {
			return nil, nil, l.judge(ctx, limited, fmt.Errorf("renew the lease in %s: %w", leaseKey, err))
		}
		l.tag, l.renewed = tag, began
	}
	limited, cancel := l.limit(ctx)
	return limited, cancel, nil
}

// The method "judge" returns a *LeaseError if a request of a Collector (command gc) failed because the lease (right to
// remove objects) ended during the request. The argument "ctx" of the method "judge" is the context of the caller,
// whose deadline does not depend on the lease.
func (l *lease) judge(ctx, limited context.Context, err error) error {
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return &LeaseError{Length: l.length(), err: err}
	}
	return err
}

func (l *lease) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithDeadline(ctx, l.renewed.Add(l.length()/2))
}

// The method "end" releases the lease (right to remove objects). If the release fails, the lease expires by itself.
func (l *lease) end(ctx context.Context) error {
	nobody := leaseDocument{FormatVersion: segments.FormatVersion}
	_, err := swap(ctx, l.at, leaseKey, nobody.encode(), l.tag)
	return err
}
