package messages

import (
	"time"

	"capper/internal/capping"
)

// activityNamespace is the namespace of the messages that stand for the activity of an hour. No API key has this
// namespace, because a name contains no blank.
const activityNamespace = "all messages"

// activityHour is the time layout of the message ID of an hour's activity.
const activityHour = "2006-01-02T15"

// ActivityStep is the length of one part of an hour. The activity of the hour has separate counts for each part.
const ActivityStep = 5 * time.Minute

// ActivityKeep is how long a store keeps the activity of an hour.
const ActivityKeep = MaxKeep

// Activity returns the message under which a store counts the decisions of all calls of an hour, at all instances. The
// Segments of its Answers are the parts of the hour. In these parts, Allowed does not include replayed users.
func Activity(at time.Time) capping.Message {
	return capping.Message{Namespace: activityNamespace, ID: at.UTC().Format(activityHour)}
}

// IsActivity reports whether the message stands for the activity of an hour. Lists of messages do not contain activity.
func IsActivity(m capping.Message) bool { return m.Namespace == activityNamespace }

// ActivityPart returns the name of the part of an hour that contains the instant: the minute at which the part begins.
func ActivityPart(at time.Time) string { return at.UTC().Truncate(ActivityStep).Format("04") }

// AddActivity adds the decisions of a call at the given instant to the activity of its hour.
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
