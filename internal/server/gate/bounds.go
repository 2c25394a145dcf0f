package gate

import (
	"cmp"
	"time"

	"capper/client/api"
	"capper/internal/pacing"
)

// Bounds limit the load that callers can put on the service. The fields are keys of the configuration's server
// section. A zero field stands for its default.
type Bounds struct {
	JSONUsers   int   // max_json_users: most ids in user_ids; api.MaxUserIDs
	BitmapUsers int   // max_bitmap_users: most ids in users_bitmap; api.MaxBitmapUsers
	BodyBytes   int64 // max_body: largest body, before and after decompression; api.MaxBodyBytes
	// max_in_flight_users: users of all calls being decided at one time; 4,000,000. A larger single batch is admitted
	// when no other call holds users
	InFlightUsers int
	// call_timeout: time limit of a store call, extended by the same time for every 250,000 users; 5 s
	CallTimeout time.Duration
	// bounds.body_bytes: memory of all bodies while they are received and decoded; 512 MiB, or four times BodyBytes
	InFlightBytes int64
	AnswerBytes   int64 // bounds.answer_bytes: memory of all answers while they are made and written; 512 MiB
	GzipRatio     int   // bounds.gzip_ratio: maximum ratio of inflated to received bytes, beyond 4 MiB; 100
	// bounds.min_rate: minimum rate at which bodies are sent and answers are read, in bytes per second, after 10 s;
	// 64 KiB
	MinRate int64
	// bounds.permit_records_per_client, bounds.permit_records: maximum number of records that calls for permits leave
	// behind
	PermitRecords pacing.RecordBounds
	Connections   int // bounds.connections: maximum number of open connections of each listener; 16,384
}

// WithDefaults returns the bounds with defaults in place of zero fields.
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

// usersPerTimeout is the number of users that extends the time limit of a store call by one CallTimeout: at 5 s, each
// user adds 20 µs.
const usersPerTimeout = 250_000

// Timeout returns the time limit of a store call for the given number of users.
func (b Bounds) Timeout(users int) time.Duration {
	return b.CallTimeout + time.Duration(float64(users)/usersPerTimeout*float64(b.CallTimeout))
}

// SlowestBody returns the longest time that a body of the maximum size may take.
func (b Bounds) SlowestBody() time.Duration {
	return GraceTime + time.Duration(b.BodyBytes/b.MinRate+1)*time.Second
}
