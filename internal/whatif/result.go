package whatif

import (
	"time"
)

// Result is the result of a replay. Its JSON names are stable.
type Result struct {
	// Since and Until bound the calls that are counted. Begins is the time of the first record that was read; records
	// before Since are replayed but not counted. Warm is the time from which the history before the counted calls was
	// requested.
	Since  time.Time `json:"since"`
	Until  time.Time `json:"until"`
	Begins time.Time `json:"audit_begins,omitzero"`
	Warm   time.Time `json:"replayed_from,omitzero"`
	// Policy is the version of the alternative limits. Configs lists the versions that were in force.
	Policy  string   `json:"limits_version"`
	Configs []string `json:"config_versions"`
	// Generation is the generation that replaced all others. If it is empty, each record kept its own.
	Generation string   `json:"generation,omitempty"`
	Notes      []string `json:"notes"` // remarks for readers

	Calls   int64 `json:"calls"`   // filter calls and releases that were counted
	Asked   int64 `json:"asked"`   // users of the filter calls, each in each call
	Judged  int64 `json:"judged"`  // users whom the replay judged again; the outcome of the others is the recorded one
	Decided int64 `json:"decided"` // decisions that were gone through, those before Since included
	// These fields count what cannot be judged: unavailable users (their retry counts instead), decisions about users
	// who were erased, and gaps where records were lost.
	Unavailable int64 `json:"unavailable"`
	Erased      int64 `json:"erased"`
	Gaps        int64 `json:"gaps"`

	Total     Row   `json:"total"`
	Days      []Row `json:"days"` // in UTC, those without calls left out
	Segments  []Row `json:"segments"`
	Channels  []Row `json:"channels"`
	Campaigns []Row `json:"campaigns"` // by how much they change, at most maxCampaigns

	Limits []change `json:"limits"` // denials by limit, suppressed, holdout and quiet
	Shadow []change `json:"shadow"` // users allowed whom a shadow limit would have denied

	Users  Users  `json:"users"`
	Memory memory `json:"memory"`
}

// Row is a name with the decisions that are counted under it.
type Row struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace,omitempty"` // namespace of a campaign
	Channel   string `json:"channel,omitempty"`   // channel of a campaign
	Before    Counts `json:"before"`              // recorded numbers
	After     Counts `json:"after"`               // under the other limits
	Gained    int64  `json:"gained"`              // sends that only the other limits allow
	Lost      int64  `json:"lost"`                // recorded sends that the other limits deny
}

// newRow returns the row of a name.
func newRow(name string, of *pair[Counts]) Row {
	return Row{Name: name, Before: of.before, After: of.after, Gained: of.after.gained, Lost: of.after.lost}
}

// Counts counts decisions.
type Counts struct {
	Sends    int64 `json:"sends"`    // recorded, each once
	Replayed int64 `json:"replayed"` // allowed, and sent before
	Denied   int64 `json:"denied"`   // answers: who asks thrice is denied thrice
	Unjudged int64 `json:"unjudged"` // users of calls for which a set that the limits need is missing
	Released int64 `json:"released"` // sends that were given back; not of segments

	// Under the other limits: sends that the record lacks, and recorded sends that are missing.
	gained, lost int64
}

func (c *Counts) add(o Counts) {
	c.Sends += o.Sends
	c.Replayed += o.Replayed
	c.Denied += o.Denied
	c.Unjudged += o.Unjudged
	c.Released += o.Released
	c.gained += o.gained
	c.lost += o.lost
}

// change is a count before and after the change of limits.
type change struct {
	Name   string `json:"name"`
	Before int64  `json:"before"`
	After  int64  `json:"after"`
}

// Users counts the users of the counted calls. Their sends are counted without released sends.
type Users struct {
	Asked     int64 `json:"asked"`
	Unchanged int64 `json:"unchanged"` // every decision is the same
	More      int64 `json:"more"`      // would have got more
	Less      int64 `json:"less"`      // would have got less
	Moved     int64 `json:"moved"`     // would have got as many, but others, or at another time
	// By counts users by the difference in their number of sends, ascending. Users without a difference are left out.
	By []step `json:"by"`
}

// step is the number of users with the same difference in sends.
type step struct {
	More  int   `json:"more"` // below 0: less
	Users int64 `json:"users"`
}

// memory is the memory of the replay at its end.
type memory struct {
	Bytes        int64   `json:"bytes"`
	Users        int64   `json:"users"` // with a history, or of whom was asked
	BytesPerUser float64 `json:"bytes_per_user"`
}
