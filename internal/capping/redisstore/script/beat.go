package script

import (
	"slices"
	"strconv"
	"time"

	"capper/internal/capping"
)

// Mode is what a beat may do.
type Mode int

// The modes of a beat.
const (
	LookOnly   Mode = iota // of an instance that runs
	Adopt                  // of one that starts
	MakeOrMend             // of one that starts and may begin anew
	Mend                   // of one that runs, where an operator has accepted that records were lost: signs are not
)

// Beat is what an instance tells the others.
type Beat struct {
	Mode        Mode
	Retention   int64 // milliseconds; 0: none yet
	ID          string
	Description string        // one line
	Silent      time.Duration // after which an instance that is not heard of is left out
	Life        time.Duration // of the records, at least
	Channels    map[string]capping.Channel
}

// Keys are the keys of a beat.
func (m *Marker) Keys() []string {
	return []string{m.Key, m.StoreKey(), m.Key + ":retentions", m.Key + ":channels", m.InstancesKey()}
}

// Args are the arguments of beat.lua after its keys.
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

// Heard is the reply of beat.lua.
type Heard struct {
	Outcome string   // format, gone, channel; or found, adopted, made, mended
	Marker  string   // of format: what was found
	Channel []string // of channel: name and number here, then those that are stored
	// Of the others:
	Longest time.Duration // the longest retention in force
	Born    time.Time
	Signed  bool
	Format  int // that the store is in now; Before: and was in until this beat
	Before  int
	Others  map[string]string // instances: what describes each
}

// DecodeBeat reads the reply of beat.lua.
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
