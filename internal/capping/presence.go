package capping

import "context"

// Presence is the result of a lookup of one send in a store. The zero value of Presence means that the store did not
// give a result.
type Presence uint8

// These constants are the possible results of a lookup of one send.
const (
	PresenceUnknown  Presence = iota // the store did not say: ask again
	PresenceRecorded                 // the send is in the log
	PresenceMissing                  // the send is not in the log
	// PresenceForgotten means that the send is not in the log now, but may have been in the log earlier. The log is
	// full, with LogBound entries of the channel, so newer entries may have displaced the send.
	PresenceForgotten
)

// The method Recorded looks up, for each of the distinct users, the recorded send of the message on the channel. The
// method Recorded writes nothing, and ignores policy and segments. Recorded therefore also finds a send to a user who
// was suppressed later. Recorded also finds a send that is too old for every limit, while the store still has the log
// entry.
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

// Locator is an optional interface of stores that keep logs on several servers (see As).
type Locator interface {
	// Locate returns the partition and the server that keep the user's log. Locate makes no network call.
	Locate(user UserID) Location
}

// Location names the partition and the server that keep a user's log.
type Location struct {
	Partition int
	Node      string // address of the server that serves the partition; "": no server at the moment
}
