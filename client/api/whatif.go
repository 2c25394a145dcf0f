package api

import "time"

// The constants below bound the fields of a WhatIfRequest, and set their defaults.
const (
	MaxLimitChanges = 100                 // changes of limits in one request
	MaxWhatIfSpan   = 92 * 24 * time.Hour // time between Since and Until
	WhatIfSpan      = 14 * 24 * time.Hour // the time before Until that a request without Since covers
	MaxCampaigns    = 1000                // campaigns in a response
	WhatIfCampaigns = 20                  // campaigns in a response if the request names no number
)

// WhatIfRequest is the body of POST /v1/whatif, which asks for the decisions of recorded filter calls under changed
// limits.
type WhatIfRequest struct {
	Limits []LimitChange `json:"limits"` // 1 to MaxLimitChanges changes of the limits in force, applied in order
	// The replay counts calls at or after Since and before Until. A zero Since means WhatIfSpan before Until; a zero
	// Until means now.
	Since time.Time `json:"since,omitzero"`
	Until time.Time `json:"until,omitzero"`
	// generation whose segments are used for every call; "": the generation that each call recorded
	Generation string `json:"generation,omitempty"`
	Campaigns  int    `json:"campaigns,omitempty"` // at most MaxCampaigns; 0: WhatIfCampaigns
}

// LimitChange is a change of a limit: a new maximum, or the removal of the limit.
type LimitChange struct {
	// the segment whose limit changes, NoSegment for users without a segment; "": every segment that has the limit, and
	// users without a segment
	Segment string `json:"segment,omitempty"`
	Limit   string `json:"limit"`            // name of the limit
	Max     *int   `json:"max,omitempty"`    // 0 to 1000; nil if Remove is true
	Remove  bool   `json:"remove,omitempty"` // true: the limit does not apply
}

// WhatIf is the response to POST /v1/whatif: the decisions of a period under changed limits.
type WhatIf struct {
	Since        time.Time `json:"since"` // bounds of the counted calls
	Until        time.Time `json:"until"`
	ReplayedFrom time.Time `json:"replayed_from"` // start of the earlier calls that were replayed, but not counted
	// ConfigVersion is the version of the limits in force, to which the changes were applied. ConfigVersions are the
	// versions that the recorded calls used.
	ConfigVersion  string   `json:"config_version"`
	ConfigVersions []string `json:"config_versions"`
	Generation     string   `json:"generation,omitempty"` // Generation of the request
	Notes          []string `json:"notes"`                // remarks for readers

	Calls   int64 `json:"calls"`   // filter calls and releases that were counted
	Asked   int64 `json:"asked"`   // users of the filter calls; a user in two calls counts twice
	Judged  int64 `json:"judged"`  // users about whom the replay decided again; others keep the recorded outcome
	Decided int64 `json:"decided"` // decisions that were replayed, including those before Since
	// Unavailable, Erased and Gaps count results that the replay did not decide again: of unavailable users, of erased
	// users, and of missing records.
	Unavailable int64 `json:"unavailable"`
	Erased      int64 `json:"erased"`
	Gaps        int64 `json:"gaps"`

	Total     WhatIfRow   `json:"total"`
	Days      []WhatIfRow `json:"days"` // in UTC; days without calls are left out
	Segments  []WhatIfRow `json:"segments"`
	Channels  []WhatIfRow `json:"channels"`
	Campaigns []WhatIfRow `json:"campaigns"` // the largest changes first
	// Others is the sum over the campaigns that are not listed, including campaigns of other namespaces; nil: none
	Others *WhatIfRow `json:"others,omitempty"`

	Limits []WhatIfChange `json:"limits"` // denials by limit, suppressed, holdout and quiet
	Shadow []WhatIfChange `json:"shadow"` // allowed users whom a shadow limit would have denied
	Users  WhatIfUsers    `json:"users"`
}

// WhatIfRow holds the counts for one row of a report, such as a segment or a day.
type WhatIfRow struct {
	Name      string       `json:"name"`
	Namespace string       `json:"namespace,omitempty"` // of a campaign
	Channel   string       `json:"channel,omitempty"`   // of a campaign
	Title     string       `json:"title,omitempty"`     // of a campaign, if the store still counts its message
	Before    WhatIfCounts `json:"before"`              // as recorded
	After     WhatIfCounts `json:"after"`               // under the changed limits
	Gained    int64        `json:"gained"`              // sends that only the changed limits allow
	Lost      int64        `json:"lost"`                // recorded sends that the changed limits deny
}

// WhatIfCounts counts decisions of a period, either as recorded or as they would have been under the changed limits.
type WhatIfCounts struct {
	Sends    int64 `json:"sends"`    // recorded, each once
	Replayed int64 `json:"replayed"` // allowed, and sent before
	Denied   int64 `json:"denied"`   // responses: a user who is denied three times counts three times
	Unjudged int64 `json:"unjudged"` // users of calls for which a required set is missing
	Released int64 `json:"released"` // sends that were released; 0 for segments
}

// WhatIfChange is a count of decisions under the recorded limits and under the changed limits.
type WhatIfChange struct {
	Name   string `json:"name"`
	Before int64  `json:"before"`
	After  int64  `json:"after"`
}

// WhatIfUsers counts users by the number of additional or missing sends under the changed limits.
type WhatIfUsers struct {
	Asked     int64        `json:"asked"`
	Unchanged int64        `json:"unchanged"` // every decision is the same
	More      int64        `json:"more"`      // would have received more
	Less      int64        `json:"less"`      // would have received less
	Moved     int64        `json:"moved"`     // would have received as many, but different ones or at other times
	By        []WhatIfStep `json:"by"`        // by the difference, ascending, without the difference 0
}

// WhatIfStep counts the users who have More additional sends under the changed limits.
type WhatIfStep struct {
	More  int   `json:"more"` // below 0: fewer
	Users int64 `json:"users"`
}
