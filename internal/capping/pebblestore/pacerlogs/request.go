package pacerlogs

import (
	"encoding/binary"

	"capper/internal/pacing"
)

// A request's value: version (1), the time from which on it is forgotten (8), what
// it was granted.
const (
	requestVersion = 1
	requestHeader  = 1 + 8
)

func encodeRequest(expires pacing.Time, grant *pacing.Remembered) []byte {
	return grant.Append(binary.BigEndian.AppendUint64([]byte{requestVersion}, uint64(expires)))
}

func decodeRequest(value []byte) (expires pacing.Time, grant *pacing.Remembered, err error) {
	if len(value) < requestHeader || value[0] != requestVersion {
		return 0, nil, damaged("value of %d bytes: must be at least %d, the first one %d", len(value), requestHeader, requestVersion)
	}
	expires = pacing.Time(binary.BigEndian.Uint64(value[1:]))
	if grant, err = pacing.DecodeRemembered(value[requestHeader:]); err != nil {
		return 0, nil, damaged("%w", err)
	}
	return expires, grant, nil
}
