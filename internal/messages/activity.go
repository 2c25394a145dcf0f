package messages

import (
	"time"

	"capper/internal/capping"
)

// activityNamespace is the namespace of artificial messages. A store counts the decisions of each hour under one
// artificial message. No API key has this namespace, because a name contains no blank.
const activityNamespace = "all messages"

// activityHour is the time layout of the ids of artificial messages, which name the hour.
const activityHour = "2006-01-02T15"

// ActivityStep is the length of the parts of an hour. A store counts the decisions of each part separately.
const ActivityStep = 5 * time.Minute

// ActivityKeep is the time for which a store keeps the counts of all decisions of an hour.
const ActivityKeep = MaxKeep

// Activity returns the artificial message under which a store counts the decisions of all calls of an hour, at all
// instances. In the Answers of this artificial message, the map Segments holds the counts of each five-minute part of
// the hour, instead of counts by segment. In these counts, Allowed does not include replayed users (who already had the
// same send).
func Activity(at time.Time) capping.Message {
	return capping.Message{Namespace: activityNamespace, ID: at.UTC().Format(activityHour)}
}

// IsActivity reports whether the message is artificial, because a store counts all decisions of an hour under it. Lists
// of messages omit artificial messages.
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
