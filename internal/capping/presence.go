package capping

import "context"

// Presence is whether a store holds a recorded send. The zero value is unknown.
type Presence uint8

// The answers about a recorded send.
const (
	PresenceUnknown  Presence = iota // not known: ask again
	PresenceRecorded                 // the send is in the log
	PresenceMissing                  // the send is not in the log
	// PresenceForgotten: the send is not in the log, which holds LogBound entries of the channel, so newer
	// entries may have displaced it.
	PresenceForgotten
)

// Recorded asks the store which users have a recorded send of the message on the channel, for users who
// are distinct. It writes nothing, and it asks neither policy nor segments: whoever is suppressed by now
// still has the send. Entries that no window can see count as recorded while the store holds them.
func (c *Capper) Recorded(ctx context.Context, message Message, channel Channel, users []UserID) ([]Presence, error) {
	full := Rule{Max: LogBound, Hold: MaxRetention.Milliseconds(), Channels: ChannelSetOf(channel)}
	verdicts := make([]Verdict, len(users))
	err := c.store.Filter(ctx, &Batch{
		Message: message, Token: message.Token(), Channel: channel, Users: users, Groups: make([]uint8, len(users)),
		Rules: [][]Rule{{full}}, Retention: MaxRetention,
	}, verdicts)
	found := make([]Presence, len(users))
	for i, verdict := range verdicts {
		found[i] = presenceOf(verdict.Outcome)
	}
	return found, err
}

func presenceOf(preview Outcome) Presence {
	switch preview {
	case Replayed:
		return PresenceRecorded
	case Allowed:
		return PresenceMissing
	case Denied:
		return PresenceForgotten
	}
	return PresenceUnknown
}

// Locator is a store that keeps logs in several places (see As).
type Locator interface {
	// Locate says where the user's log is. It asks nobody.
	Locate(user UserID) Location
}

// Location is where a log is.
type Location struct {
	Partition int
	Node      string // the address of the server that serves the partition; "": none does now
}
