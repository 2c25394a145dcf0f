package whatif

import (
	"time"
)

// Result is what would have happened. Its JSON names are stable.
type Result struct {
	// Since and Until bound the calls that are counted; Begins is the first record that was
	// read, Warm from when on records were asked for: those before Since are replayed and not counted.
	Since  time.Time `json:"since"`
	Until  time.Time `json:"until"`
	Begins time.Time `json:"audit_begins,omitzero"`
	Warm   time.Time `json:"replayed_from,omitzero"`
	// Policy is the version of the other limits, Configs those that were in force.
	Policy  string   `json:"limits_version"`
	Configs []string `json:"config_versions"`
	// Generation is the one that stood in for all; "": each record's own.
	Generation string   `json:"generation,omitempty"`
	Notes      []string `json:"notes"` // what readers must know

	Calls   int64 `json:"calls"`   // filter calls and releases that were counted
	Asked   int64 `json:"asked"`   // users of the filter calls, each in each call
	Judged  int64 `json:"judged"`  // of them, those who were judged anew; the others' outcome is the recorded one.
	Decided int64 `json:"decided"` // decisions that were gone through, those before Since included
	// What cannot be judged: users who were unavailable (no demand: the retry is), of the
	// answers those about users who are erased, gaps where records were lost.
	Unavailable int64 `json:"unavailable"`
	Erased      int64 `json:"erased"`
	Gaps        int64 `json:"gaps"`

	Total     row   `json:"total"`
	Days      []row `json:"days"` // in UTC, those without calls left out
	Segments  []row `json:"segments"`
	Channels  []row `json:"channels"`
	Campaigns []row `json:"campaigns"` // by how much they change, at most maxCampaigns

	Limits []change `json:"limits"` // denials by limit, suppressed, holdout and quiet
	Shadow []change `json:"shadow"` // users allowed whom a shadow limit would have denied

	Users  Users  `json:"users"`
	Memory memory `json:"memory"`
}

// row is what is counted together.
type row struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace,omitempty"` // of campaigns
	Channel   string `json:"channel,omitempty"`   // of campaigns
	Before    Counts `json:"before"`              // as recorded
	After     Counts `json:"after"`               // under the other limits
}

// Counts counts decisions.
type Counts struct {
	Sends    int64 `json:"sends"`    // recorded, each once
	Replayed int64 `json:"replayed"` // allowed, and sent before
	Denied   int64 `json:"denied"`   // answers: who asks thrice is denied thrice
	Unjudged int64 `json:"unjudged"` // nobody may be sent to: a set that the limits need is missing
	Released int64 `json:"released"` // sends that were given back; not of segments
}

func (c *Counts) add(o Counts) {
	c.Sends += o.Sends
	c.Replayed += o.Replayed
	c.Denied += o.Denied
	c.Unjudged += o.Unjudged
	c.Released += o.Released
}

// change is how many there were, and would have been.
type change struct {
	Name   string `json:"name"`
	Before int64  `json:"before"`
	After  int64  `json:"after"`
}

// Users counts users of whom was asked. Their sends are without those that were given back.
type Users struct {
	Asked     int64 `json:"asked"`
	Unchanged int64 `json:"unchanged"` // every decision is the same
	More      int64 `json:"more"`      // would have got more
	Less      int64 `json:"less"`      // would have got less
	Moved     int64 `json:"moved"`     // would have got as many, but others, or at another time
	// By is how many users would have got so many more, or less: ascending, without those who
	// would have got as many.
	By []step `json:"by"`
}

// step is users who would have got so many more.
type step struct {
	More  int   `json:"more"` // below 0: less
	Users int64 `json:"users"`
}

// memory is what the replay held in the end.
type memory struct {
	Bytes        int64   `json:"bytes"`
	Users        int64   `json:"users"` // with a history, or of whom was asked
	BytesPerUser float64 `json:"bytes_per_user"`
}
