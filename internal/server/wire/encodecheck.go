package wire

import (
	"encoding/json"
	"slices"
	"time"

	"capper/client/api"
	"capper/internal/capping"
)

// sendsCheck is api.SendsCheck with ids of every kind.
type sendsCheck struct {
	Missing     []missingSends        `json:"missing"`
	Unavailable []json.RawMessage     `json:"unavailable"`
	Time        time.Time             `json:"time"`
	Summary     api.SendsCheckSummary `json:"summary"`
}

// missingSends is api.MissingSends with ids of every kind.
type missingSends struct {
	Partition *int              `json:"partition,omitempty"`
	Node      string            `json:"node,omitempty"`
	UserIDs   []json.RawMessage `json:"user_ids"`
}

// A group holds users without the recorded send, whose logs are in one partition of the store.
type group struct {
	partition *int
	node      string
	places    []int // positions of the users in the request
}

// CheckAnswer returns the response to POST /v1/sends/check, which looks for recorded sends. The function "locate"
// returns the partition and the node with a user's log. If "locate" is nil, the store has only one location. Even if
// the request contained a bitmap or packed ids, the response to POST /v1/sends/check lists ids.
func CheckAnswer(
	r *MessageRequest, found []capping.Presence, at time.Time, locate func(capping.UserID) capping.Location,
) any {
	sum := api.SendsCheckSummary{Requested: len(r.Users) + r.Duplicates, Duplicates: r.Duplicates}
	var missing, unavailable []int
	for i, presence := range found {
		switch presence {
		case capping.PresenceRecorded:
			sum.Recorded++
		case capping.PresenceForgotten:
			sum.Forgotten++
		case capping.PresenceMissing:
			missing = append(missing, i)
		default:
			unavailable = append(unavailable, i)
		}
	}
	sum.Missing, sum.Unavailable = len(missing), len(unavailable)
	at = at.UTC().Truncate(time.Millisecond)
	groups := grouped(r.Users, missing, locate)
	if r.Given != nil {
		a := &sendsCheck{Missing: []missingSends{}, Unavailable: r.ids(unavailable), Time: at, Summary: sum}
		for _, g := range groups {
			a.Missing = append(a.Missing, missingSends{g.partition, g.node, r.ids(g.places)})
		}
		return a
	}
	a := &api.SendsCheck{Missing: []api.MissingSends{}, Unavailable: r.numbers(unavailable), Time: at, Summary: sum}
	for _, g := range groups {
		a.Missing = append(a.Missing, api.MissingSends{Partition: g.partition, Node: g.node,
			UserIDs: r.numbers(g.places)})
	}
	return a
}

// The function "grouped" groups users by the partition that holds their logs of sends, in ascending order of
// partitions. The argument "places" lists the positions of the users in the request.
func grouped(users []capping.UserID, places []int, locate func(capping.UserID) capping.Location) (groups []*group) {
	if locate == nil {
		if len(places) == 0 {
			return nil
		}
		return []*group{{places: places}}
	}
	known := map[int]*group{}
	for _, i := range places {
		at := locate(users[i])
		if known[at.Partition] == nil {
			known[at.Partition] = &group{partition: &at.Partition, node: at.Node}
			groups = append(groups, known[at.Partition])
		}
		known[at.Partition].places = append(known[at.Partition].places, i)
	}
	slices.SortFunc(groups, func(a, b *group) int { return *a.partition - *b.partition })
	return groups
}

// The method "numbers" returns the dense ids of the users at the given positions of the request.
func (a *Audience) numbers(places []int) []uint32 {
	list := make([]uint32, len(places))
	for n, i := range places {
		list[n] = capping.Dense(a.Users[i])
	}
	return list
}

// The method "ids" returns the ids of the users at the given positions of the request, as JSON values.
func (a *Audience) ids(places []int) []json.RawMessage {
	list := make([]json.RawMessage, len(places))
	for n, i := range places {
		list[n] = a.Given.append(nil, i, a.Users[i])
	}
	return list
}
