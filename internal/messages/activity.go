package messages

import (
	"time"

	"capper/internal/capping"
)

// activityNamespace is the namespace of the artificial messages under which a store counts the decisions of an hour. No
// API key has this namespace, because a name contains no blank.
const activityNamespace = "all messages"

// activityHour is the time layout of the id of the artificial message under which a store counts the decisions of an
// hour.
const activityHour = "2006-01-02T15"

// ActivityStep is the length of the parts of an hour for which a store counts decisions separately.
const ActivityStep = 5 * time.Minute

// ActivityKeep is how long a store keeps the counts of all decisions of an hour.
const ActivityKeep = MaxKeep

// Activity returns the artificial message under which a store counts the decisions of all calls of an hour, at all
// instances. In the Answers of the artificial message of an hour, the map Segments has the parts of the hour instead of
// segments. In the counts of a part of an hour, Allowed does not include replayed users (who had the same send before).
func Activity(at time.Time) capping.Message {
	return capping.Message{Namespace: activityNamespace, ID: at.UTC().Format(activityHour)}
}

// IsActivity reports whether the message is an artificial one, under which a store counts all decisions of an hour.
// Lists of messages leave out the artificial messages under which a store counts all decisions of an hour.
func IsActivity(m capping.Message) bool { return m.Namespace == activityNamespace }

// ActivityPart returns the name of the five-minute part of an hour that contains the instant. The name of the part is
// the minute at which the part begins.
func ActivityPart(at time.Time) string { return at.UTC().Truncate(ActivityStep).Format("04") }

// AddActivity adds the decisions of a call at the given instant to the counts of all decisions of the hour.
func (a *Answers) AddActivity(call *Answers, at time.Time) {
	a.called(call.Calls, call.First)
	a.Last = max(a.Last, call.Last)
	a.Asked += call.Asked
	a.Allowed += call.Allowed
	a.Replayed += call.Replayed
	a.Unavailable += call.Unavailable
	denied := int64(0)
	for _, n := range call.Denied {
		denied += n
	}
	addCounts(&a.Denied, call.Denied)
	if a.Segments == nil {
		a.Segments = make(map[string]SegmentAnswers, 1)
	}
	part := ActivityPart(at)
	a.Segments[part] = a.Segments[part].plus(SegmentAnswers{call.Asked, call.Allowed - call.Replayed, denied})
}
