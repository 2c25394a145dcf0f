package wire

import (
	"cmp"
	"slices"
	"time"

	"capper/client/api"
	"capper/internal/capping"
)

// CheckAnswer builds the answer of a call that looks for recorded sends. The function locate returns where a user's
// log is stored; nil means that there is only one place.
func CheckAnswer(
	r *MessageRequest, found []capping.Presence, at time.Time, locate func(capping.UserID) capping.Location,
) *api.SendsCheck {
	a := &api.SendsCheck{Missing: []api.MissingSends{}, Unavailable: []uint32{},
		Time: at.UTC().Truncate(time.Millisecond)}
	a.Summary = api.SendsCheckSummary{Requested: len(r.Users) + r.Duplicates, Duplicates: r.Duplicates}
	var missing []capping.UserID
	for i, presence := range found {
		switch presence {
		case capping.PresenceRecorded:
			a.Summary.Recorded++
		case capping.PresenceForgotten:
			a.Summary.Forgotten++
		case capping.PresenceMissing:
			missing = append(missing, r.Users[i])
		default:
			a.Unavailable = append(a.Unavailable, capping.Dense(r.Users[i]))
		}
	}
	a.Summary.Missing, a.Summary.Unavailable = len(missing), len(a.Unavailable)
	if len(missing) > 0 {
		a.Missing = byPlace(missing, locate)
	}
	return a
}

func byPlace(users []capping.UserID, locate func(capping.UserID) capping.Location) []api.MissingSends {
	if locate == nil {
		return []api.MissingSends{{UserIDs: capping.AppendDense(nil, users)}}
	}
	places := map[int]*api.MissingSends{}
	for _, user := range users {
		at := locate(user)
		if places[at.Partition] == nil {
			places[at.Partition] = &api.MissingSends{Partition: &at.Partition, Node: at.Node}
		}
		places[at.Partition].UserIDs = append(places[at.Partition].UserIDs, capping.Dense(user))
	}
	list := make([]api.MissingSends, 0, len(places))
	for _, place := range places {
		list = append(list, *place)
	}
	slices.SortFunc(list, func(a, b api.MissingSends) int { return cmp.Compare(*a.Partition, *b.Partition) })
	return list
}
