package sizing

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"
)

// Load is the planned load: users, sends and calls.
type Load struct {
	Users    int64   `json:"users"`         // users who receive messages
	Sends    float64 `json:"sends"`         // that each of them has on record: received within the longest window
	IDs      string  `json:"ids,omitempty"` // uint64, uuid or text; "": dense
	Density  float64 `json:"density"`       // share of the ids between the lowest and the highest that are users; 0: 1
	Days     float64 `json:"days"`          // days of the longest window, for which sends and messages are kept; 0: 7
	Messages float64 `json:"campaigns"`     // campaigns a day; 0: 10
	// Blast is the number of users who are decided within the time Within. The zero values mean a tenth of the users
	// in ten minutes.
	Blast  int64         `json:"blast"`
	Within time.Duration `json:"-"`
	// Single is the number of calls a second with one user each, at the same time as the blast.
	Single float64 `json:"calls"`

	Shards    int `json:"shards"`    // masters; 0: as few as will do
	Replicas  int `json:"replicas"`  // replicas of each master; negative: none, 0: 2
	Instances int `json:"instances"` // instances of the service; 0: 2
}

// MarshalJSON names the numbers like the flags of `capper size`, and adds the unit to the time.
func (l Load) MarshalJSON() ([]byte, error) {
	type numbers Load
	return json.Marshal(struct {
		numbers
		Within float64 `json:"within_seconds"`
	}{numbers(l), l.Within.Seconds()})
}

// These are the highest accepted values. MaxUsers is the number of possible ids, MaxShards the number of partitions,
// and MaxSends the sends that a log keeps for a channel. The other bounds catch typing errors.
const (
	MaxUsers     = 1 << 32
	MaxShards    = 64
	MaxSends     = 1000
	MaxDays      = 3660
	MaxCampaigns = 1e6 // a day
	MaxCalls     = 1e7 // a second
	MaxWithin    = 7 * 24 * time.Hour
	MaxReplicas  = 5
	MaxInstances = 10_000
)

// WithDefaults replaces zero fields by their defaults.
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

// Validate returns an error that names every invalid number of the load, with the rule and the value. The load must
// have its defaults. The error uses the names of the flags of capper size.
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

// checkIDs returns an error if the ids do not suffice for all users.
func (l Load) checkIDs() error {
	if l.Users > 0 && l.Density > 0 && float64(l.Users)/l.Density > MaxUsers && l.Users <= MaxUsers {
		return fmt.Errorf("density: must be at least %.4g for %d users, got %g",
			float64(l.Users)/MaxUsers, l.Users, l.Density)
	}
	return nil
}

func between[T int | int64 | time.Duration](name string, value, least, most T) error {
	if value >= least && value <= most {
		return nil
	}
	return fmt.Errorf("%s: must be %v to %v, got %v", name, least, most, value)
}

// A comparison with NaN is false, so the conditions below reject NaN.

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

// aShard is the most data, in bytes, that one master should have. A master of this size copies its data to a new
// replica, or loads the data at its start, in some minutes.
const aShard = 10 << 30

// busy is the highest share of a processor that a master's commands should use. The rest is for the disk, the
// replicas and unexpected load.
const busy = 0.5

// leastCluster is the smallest number of masters in a Redis Cluster.
const leastCluster = 3

// LeastShards returns the smallest sufficient number of masters. The load must be valid, except for its number of
// shards.
func (l Load) LeastShards() int {
	bySize := math.Ceil(RedisData(l) / aShard)
	byTime := math.Ceil(l.RedisCores() / busy)
	switch n := min(MaxShards, max(bySize, byTime)); {
	case n <= 1:
		return 1 // one server, outside a cluster
	default:
		return int(max(leastCluster, n))
	}
}

// Spread reports whether the ids are not dense: their images are spread evenly over the store's buckets.
func (l Load) Spread() bool { return l.IDs != "" }

// Rate returns the number of users a second in the blast.
func (l Load) Rate() float64 { return float64(l.Blast) / l.Within.Seconds() }

// largestShare returns the share of the partitions on the fullest master.
func (l Load) largestShare() float64 {
	return math.Ceil(MaxShards/float64(l.Shards)) / MaxShards
}
