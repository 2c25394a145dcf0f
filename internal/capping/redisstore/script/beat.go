package script

import (
	"slices"
	"strconv"
	"time"

	"capper/internal/capping"
)

// A Mode determines the shared records that the script beat.lua may create during a heartbeat. All instances share the
// records that beat.lua creates.
type Mode int

// LookOnly, Adopt, MakeOrMend and Mend are the modes of a heartbeat. A mode determines the shared records that the
// heartbeat may create.
const (
	LookOnly   Mode = iota // for a running instance
	Adopt                  // for a start: uses existing logs even if no other records exist
	MakeOrMend             // for a start that may create the store
	Mend                   // for a running instance whose operator accepted lost records; creates no sentinel keys
)

// Beat is the content of a heartbeat: the data that an instance sends to the other instances through Redis.
type Beat struct {
	Mode        Mode
	Retention   int64 // milliseconds; 0: no policy yet
	ID          string
	Description string        // one line
	Silent      time.Duration // instances without a heartbeat for this time are left out of the list
	Life        time.Duration // minimum TTL of the shared records
	Channels    map[string]capping.Channel
}

// Keys returns the Redis keys of a call of beat.lua.
func (m *Marker) Keys() []string {
	return []string{m.Key, m.StoreKey(), m.Key + ":retentions", m.Key + ":channels", m.InstancesKey()}
}

// Args returns the arguments of beat.lua, except the Redis keys.
func (b *Beat) Args(m *Marker) []any {
	args := []any{
		m.Text, m.formats.Oldest(), m.formats.Newest(), m.space,
		int(b.Mode), b.Retention, b.ID, b.Description, b.Silent.Milliseconds(), b.Life.Milliseconds(),
	}
	for name, number := range b.Channels {
		args = append(args, name, int(number))
	}
	return args
}

// Heard is the decoded reply of the script beat.lua to a heartbeat.
type Heard struct {
	Outcome string   // format, gone or channel; otherwise found, adopted, made or mended
	Marker  string   // with the outcome format: the stored marker
	Channel []string // with the outcome channel: name and number in this instance, then the stored name and number
	// The fields from Longest to Others are set if the outcome is found, adopted, made or mended.
	Longest time.Duration // the longest retention in force
	Born    time.Time
	Signed  bool
	Format  int // format of the store after this heartbeat; Before is the format before the heartbeat
	Before  int
	Others  map[string]string // other instances: id to description
}

// DecodeBeat decodes the reply of the script beat.lua to a heartbeat.
func DecodeBeat(reply []string) (Heard, error) {
	h := Heard{Others: map[string]string{}}
	if len(reply) > 0 {
		h.Outcome = reply[0]
	}
	switch {
	case h.Outcome == "format" && len(reply) == 2:
		h.Marker = reply[1]
		return h, nil
	case h.Outcome == "gone" && len(reply) == 1:
		return h, nil
	case h.Outcome == "channel" && len(reply) == 5:
		h.Channel = reply[1:]
		return h, nil
	case !slices.Contains([]string{"found", "adopted", "made", "mended"}, h.Outcome) || len(reply) < 6 ||
		len(reply)%2 != 0:
		return Heard{}, ErrReply
	}
	var numbers [4]int64
	for i, text := range []string{reply[1], reply[2], reply[4], reply[5]} {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return Heard{}, ErrReply
		}
		numbers[i] = n
	}
	h.Longest, h.Born = time.Duration(numbers[0])*time.Millisecond, time.UnixMilli(numbers[1])
	h.Signed, h.Before, h.Format = reply[3] == "1", int(numbers[2]), int(numbers[3])
	for i := 6; i+1 < len(reply); i += 2 {
		h.Others[reply[i]] = reply[i+1]
	}
	return h, nil
}
