package gate

import (
	"cmp"
	"time"

	"capper/client/api"
	"capper/internal/pacing"
)

// Bounds limit the load that callers can put on the service. The name at the start of each field's comment is a key
// in the section "server" of the configuration. A zero field means its default value.
type Bounds struct {
	JSONUsers   int   // max_json_users: maximum number of ids in user_ids; default api.MaxUserIDs
	BitmapUsers int   // max_bitmap_users: maximum number of ids in users_bitmap; default api.MaxBitmapUsers
	BodyBytes   int64 // max_body: maximum size of a body, before and after decompression; default api.MaxBodyBytes
	// max_in_flight_users: maximum number of users in all simultaneous calls; default 4,000,000. The server admits a
	// call with more users while no other call holds users.
	InFlightUsers int
	// call_timeout: time limit of a store call; the limit grows by the same duration for every 250,000 users; default 5
	// s
	CallTimeout time.Duration
	// bounds.body_bytes: memory of all request bodies while they are received and decoded; default 512 MiB, or four
	// times BodyBytes if that is more
	InFlightBytes int64
	AnswerBytes   int64 // bounds.answer_bytes: memory of all responses until they are written; default 512 MiB
	GzipRatio     int   // bounds.gzip_ratio: maximum ratio of inflated to received bytes, above 4 MiB; default 100
	// bounds.min_rate: minimum rate of clients that send bodies and read responses, in bytes per second, after the
	// first 10 s; default 64 KiB
	MinRate int64
	// bounds.permit_records_per_client, bounds.permit_records: maximum number of records of permit requests in the
	// store
	PermitRecords pacing.RecordBounds
	Connections   int // bounds.connections: maximum number of open connections of each listener; default 16,384
}

// WithDefaults returns a copy of the bounds b in which the default value replaces every zero field.
func (b Bounds) WithDefaults() Bounds {
	b.JSONUsers = cmp.Or(b.JSONUsers, api.MaxUserIDs)
	b.BitmapUsers = cmp.Or(b.BitmapUsers, api.MaxBitmapUsers)
	b.BodyBytes = cmp.Or(b.BodyBytes, api.MaxBodyBytes)
	b.InFlightUsers = cmp.Or(b.InFlightUsers, 4_000_000)
	b.InFlightBytes = cmp.Or(b.InFlightBytes, max(512<<20, 4*b.BodyBytes))
	b.AnswerBytes = cmp.Or(b.AnswerBytes, 512<<20)
	b.GzipRatio = cmp.Or(b.GzipRatio, 100)
	b.MinRate = cmp.Or(b.MinRate, 64<<10)
	b.Connections = cmp.Or(b.Connections, 16_384)
	b.PermitRecords = b.PermitRecords.WithDefaults()
	b.CallTimeout = cmp.Or(b.CallTimeout, 5*time.Second)
	return b
}

// The time limit of a store call grows by one CallTimeout for each usersPerTimeout users. If CallTimeout is 5 s, each
// user adds 20 µs to the time limit.
const usersPerTimeout = 250_000

// Timeout returns the time limit of a store call for the given number of users.
func (b Bounds) Timeout(users int) time.Duration {
	return b.CallTimeout + time.Duration(float64(users)/usersPerTimeout*float64(b.CallTimeout))
}

// SlowestBody returns the longest permitted time for sending a body of the maximum size.
func (b Bounds) SlowestBody() time.Duration {
	return GraceTime + time.Duration(b.BodyBytes/b.MinRate+1)*time.Second
}
