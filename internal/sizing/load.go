package sizing

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"
)

// Load is a planned load: users, sends and calls.
type Load struct {
	Users    int64   `json:"users"`         // number of users who receive messages
	Sends    float64 `json:"sends"`         // average number of sends to a user within the longest window
	IDs      string  `json:"ids,omitempty"` // uint64, uuid or text; "": dense
	Density  float64 `json:"density"`       // fraction of the range of ids that belongs to users; 0: 1
	Days     float64 `json:"days"`          // days in the longest window, for which the store keeps sends and messages; 0: 7
	Messages float64 `json:"campaigns"`     // number of campaigns per day; 0: 10
	// Blast is the number of users in the largest campaign (the blast). Within is the time in which capper must decide
	// about these users. The zero values mean a tenth of all users, and ten minutes.
	Blast  int64         `json:"blast"`
	Within time.Duration `json:"-"`
	// Single is the number of calls per second with one user each, while the blast (the largest campaign) runs.
	Single float64 `json:"calls"`

	Shards    int `json:"shards"`    // number of Redis masters; 0: the smallest sufficient number
	Replicas  int `json:"replicas"`  // number of replicas of each master; negative: no replicas; 0: 2
	Instances int `json:"instances"` // number of instances of the service; 0: 2
}

// MarshalJSON encodes the load. The names of the JSON fields are the flags of `capper size`; the name of the duration
// also contains the unit.
func (l Load) MarshalJSON() ([]byte, error) {
	type numbers Load
	return json.Marshal(struct {
		numbers
		Within float64 `json:"within_seconds"`
	}{numbers(l), l.Within.Seconds()})
}

// These constants are the maximum values of the fields of Load. MaxUsers is the number of possible dense ids (32-bit
// numbers). MaxShards is the number of partitions of the Redis store. MaxSends is the maximum number of sends in a
// user's log for one channel. The other maximum values only detect typing errors.
const (
	MaxUsers     = 1 << 32
	MaxShards    = 64
	MaxSends     = 1000
	MaxDays      = 3660
	MaxCampaigns = 1e6 // per day
	MaxCalls     = 1e7 // per second
	MaxWithin    = 7 * 24 * time.Hour
	MaxReplicas  = 5
	MaxInstances = 10_000
)

// WithDefaults returns a copy of the load, with default values in place of zero values.
func (l Load) WithDefaults() Load {
	l.Sends = cmp.Or(l.Sends, 5)
	l.Density = cmp.Or(l.Density, 1)
	l.Days = cmp.Or(l.Days, 7)
	l.Messages = cmp.Or(l.Messages, 10)
	l.Blast = cmp.Or(l.Blast, max(1, l.Users/10))
	l.Within = cmp.Or(l.Within, 10*time.Minute)
	l.Replicas = cmp.Or(l.Replicas, 2)
	l.Replicas = max(l.Replicas, 0)
	l.Instances = cmp.Or(l.Instances, 2)
	if l.Shards == 0 {
		l.Shards = l.LeastShards()
	}
	return l
}

// Validate returns an error that lists all invalid fields of the load, with the rule and the value. The error names a
// field by the flag of `capper size` that sets the field. Call WithDefaults before Validate.
func (l Load) Validate() error {
	return errors.Join(
		between("users", l.Users, 1, MaxUsers),
		share("density", l.Density),
		l.checkIDs(),
		atMost("sends", l.Sends, MaxSends),
		atMost("days", l.Days, MaxDays),
		fromZero("campaigns", l.Messages, MaxCampaigns),
		between("blast", l.Blast, 1, max(1, l.Users)),
		between("within", l.Within, time.Second, MaxWithin),
		fromZero("calls", l.Single, MaxCalls),
		between("shards", l.Shards, 1, MaxShards),
		between("replicas", l.Replicas, 0, MaxReplicas),
		between("instances", l.Instances, 1, MaxInstances),
	)
}

// checkIDs returns an error if the number of possible ids is too small for all users. The density of a load is the
// fraction of the possible ids that belongs to users.
func (l Load) checkIDs() error {
	if l.Users > 0 && l.Density > 0 && float64(l.Users)/l.Density > MaxUsers && l.Users <= MaxUsers {
		return fmt.Errorf("density: %d users need a density of at least %.4g, because ids have 32 bits, got %g",
			l.Users, float64(l.Users)/MaxUsers, l.Density)
	}
	return nil
}

func between[T int | int64 | time.Duration](name string, value, least, most T) error {
	if value >= least && value <= most {
		return nil
	}
	return fmt.Errorf("%s: must be %v to %v, got %v", name, least, most, value)
}

// Comparisons with NaN are false. The conditions below have a form that rejects NaN.

func share(name string, value float64) error {
	if value > 0 && value <= 1 {
		return nil
	}
	return fmt.Errorf("%s: must be more than 0 and at most 1, got %g", name, value)
}

func atMost(name string, value, most float64) error {
	if value > 0 && value <= most {
		return nil
	}
	return fmt.Errorf("%s: must be more than 0 and at most %.0f, got %g", name, most, value)
}

func fromZero(name string, value, most float64) error {
	if value >= 0 && value <= most {
		return nil
	}
	return fmt.Errorf("%s: must be 0 to %.0f, got %g", name, most, value)
}

// aShard is the maximum size in bytes of the data that one Redis master should have. A Redis master with at most 10
// GiB needs only some minutes to copy its data to a new replica, or to load it at its start.
const aShard = 10 << 30

// The constant "busy" is the maximum fraction of a processor that the commands of a Redis master should use. A Redis
// master needs the remaining processor time for the disk, the replicas and unexpected load.
const busy = 0.5

// leastCluster is the minimum number of masters in a Redis Cluster.
const leastCluster = 3

// LeastShards returns the smallest sufficient number of Redis masters for the load. All fields of the load except the
// field Shards must be valid.
func (l Load) LeastShards() int {
	bySize := math.Ceil(RedisData(l) / aShard)
	byTime := math.Ceil(l.RedisCores() / busy)
	switch n := min(MaxShards, max(bySize, byTime)); {
	case n <= 1:
		return 1 // a single server without a cluster
	default:
		return int(max(leastCluster, n))
	}
}

// The method Spread reports whether the user ids have a kind other than dense (32-bit numbers). The id images (64-bit
// hashes) of such ids are spread evenly over the buckets of the store (users who share a Redis key).
func (l Load) Spread() bool { return l.IDs != "" }

// Rate returns the number of users per second about whom capper decides in the blast (the largest campaign).
func (l Load) Rate() float64 { return float64(l.Blast) / l.Within.Seconds() }

// largestShare returns the fraction of all partitions on the Redis master with most partitions.
func (l Load) largestShare() float64 {
	return math.Ceil(MaxShards/float64(l.Shards)) / MaxShards
}
