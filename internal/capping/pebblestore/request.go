package pebblestore

import (
	"encoding/binary"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"capper/internal/pacing"
)

// The stored value of a remembered permit request has three parts: the version (1 byte), the time of expiry (8 bytes)
// and the grant.
const (
	requestVersion = 1
	requestHeader  = 1 + 8
)

func encodeRequest(expires pacing.Time, grant *pacing.Remembered) []byte {
	return grant.Append(binary.BigEndian.AppendUint64([]byte{requestVersion}, uint64(expires)))
}

func decodeRequest(value []byte) (expires pacing.Time, grant *pacing.Remembered, err error) {
	if expires, err = decodeExpiry(value); err != nil {
		return 0, nil, err
	}
	if grant, err = pacing.DecodeRemembered(value[requestHeader:]); err != nil {
		return 0, nil, damaged("%w", err)
	}
	return expires, grant, nil
}

func decodeExpiry(value []byte) (pacing.Time, error) {
	if len(value) < requestHeader || value[0] != requestVersion {
		return 0, damaged("value has %d bytes, but must have at least %d bytes and begin with the byte %d",
			len(value), requestHeader, requestVersion)
	}
	return pacing.Time(binary.BigEndian.Uint64(value[1:])), nil
}

// The method "remembered" returns the earlier grant of the permit request, and the time at which the grant expires. If
// the store does not remember the request, the method "remembered" returns nil.
func (l *pacerLogs) remembered(ask *pacing.Ask, now pacing.Time) (
	grant *pacing.Remembered, expires pacing.Time, err error) {
	if ask.Request == (pacing.Request{}) {
		return nil, 0, nil
	}
	value, err := l.db.Lookup(requestKey(ask.Request))
	if err != nil || value == nil {
		return nil, 0, err
	}
	expires, grant, err = decodeRequest(value)
	switch {
	case err != nil:
		return nil, 0, fmt.Errorf("decode the stored permit request %x: %w", ask.Request, err)
	case expires <= now:
		return nil, 0, nil
	case grant.Fingerprint != ask.Fingerprint():
		return nil, 0, &pacing.ReuseError{}
	}
	return grant, expires, nil
}

func remember(batch *pebble.Batch, now pacing.Time, ask *pacing.Ask, placed *pacing.Placed) {
	grant := &pacing.Remembered{Fingerprint: ask.Fingerprint(), More: placed.More, Log: placed.Log}
	// Set returns an error only for indexed batches.
	_ = batch.Set(requestKey(ask.Request), encodeRequest(now.Add(ask.RememberedFor()), grant), nil)
}
