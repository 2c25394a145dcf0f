package whatif

import (
	"time"

	"capper/client/api"
)

// Result is the result of a replay. The names of the JSON fields of a Result are stable.
type Result struct {
	// Since and Until bound the calls that the counts contain. Begins is the time of the first record that the replay
	// read: the replay reads records before Since, but does not count them. Warm is the time from which the replay
	// requested records.
	Since  time.Time `json:"since"`
	Until  time.Time `json:"until"`
	Begins time.Time `json:"audit_begins,omitzero"`
	Warm   time.Time `json:"replayed_from,omitzero"`
	// Policy is the configuration version of the alternative limits. Configs lists the configuration versions that were
	// in force at the calls.
	Policy  string   `json:"limits_version"`
	Configs []string `json:"config_versions"`
	// Generation is the segments generation (published version) with which the replay decided all records. If
	// Generation is empty, the replay decided each record with the generation that the record names.
	Generation string   `json:"generation,omitempty"`
	Notes      []string `json:"notes"` // remarks for readers

	Calls   int64 `json:"calls"`   // filter calls and releases that were counted
	Asked   int64 `json:"asked"`   // users of the filter calls, each in each call
	Judged  int64 `json:"judged"`  // users whom the replay judged again; all others have the recorded outcome
	Decided int64 `json:"decided"` // decisions that were replayed, including those before Since
	// These fields count what the replay cannot judge: unavailable users (their retry counts instead), decisions about
	// erased users, and gaps with lost records.
	Unavailable int64 `json:"unavailable"`
	Erased      int64 `json:"erased"`
	Gaps        int64 `json:"gaps"`

	Total     api.WhatIfRow   `json:"total"`
	Days      []api.WhatIfRow `json:"days"` // in UTC, those without calls left out
	Segments  []api.WhatIfRow `json:"segments"`
	Channels  []api.WhatIfRow `json:"channels"`
	Campaigns []api.WhatIfRow `json:"campaigns"` // the largest changes first, at most maxCampaigns

	Limits []api.WhatIfChange `json:"limits"` // denials by limit, suppressed, holdout and quiet
	Shadow []api.WhatIfChange `json:"shadow"` // users allowed whom a shadow limit would have denied

	Users  api.WhatIfUsers `json:"users"` // numbers of users; released sends do not count
	Memory memory          `json:"memory"`
}

// newRow returns a row of the result, with a name and with the counts before and after the change of limits.
func newRow(name string, of *pair[Counts]) api.WhatIfRow {
	return api.WhatIfRow{Name: name, Before: of.before.answer(), After: of.after.answer(), Gained: of.after.gained,
		Lost: of.after.lost}
}

// The type Counts counts the decisions of calls under one policy, by their outcome; see api.WhatIfCounts.
type Counts struct {
	Sends, Replayed, Denied, Unjudged, Released int64
	// The field gained counts sends that only the alternative limits allow. The field lost counts recorded sends that
	// the alternative limits deny.
	gained, lost int64
}

func (c *Counts) answer() api.WhatIfCounts {
	return api.WhatIfCounts{Sends: c.Sends, Replayed: c.Replayed, Denied: c.Denied, Unjudged: c.Unjudged,
		Released: c.Released}
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

// A memory describes the memory that a replay uses at its end.
type memory struct {
	Bytes        int64   `json:"bytes"`
	Users        int64   `json:"users"` // with a history, or in a counted call
	BytesPerUser float64 `json:"bytes_per_user"`
}
