package messagestest

import (
	"slices"

	"capper/internal/capping"
	"capper/internal/messages"
)

// A model holds the sends that the store under test must have recorded and counted.
type model struct {
	logs  map[capping.UserID][]messages.Key
	sends map[messages.Key]*messages.Sends
}

func newModel() *model {
	return &model{map[capping.UserID][]messages.Key{}, map[messages.Key]*messages.Sends{}}
}

// The method "filter" records a send of the message in the model for each user who has fewer than "most" sends. If
// "most" is 0, the model applies no limit.
func (m *model) filter(key messages.Key, most int, users []capping.UserID) (outcomes []capping.Outcome) {
	if m.sends[key] == nil {
		m.sends[key] = &messages.Sends{}
	}
	for _, user := range users {
		switch log := m.logs[user]; {
		case slices.Contains(log, key):
			outcomes = append(outcomes, capping.Replayed)
		case most > 0 && len(log) >= most:
			outcomes = append(outcomes, capping.Denied)
		default:
			m.logs[user] = append(log, key)
			m.sends[key].Recorded++
			outcomes = append(outcomes, capping.Allowed)
		}
	}
	return outcomes
}

func (m *model) release(message capping.Message, channel capping.Channel,
	users []capping.UserID) (released []capping.Released) {
	for _, user := range users {
		done := capping.ReleaseAbsent
		m.logs[user] = slices.DeleteFunc(m.logs[user], func(key messages.Key) bool {
			if key.Message != message || channel != 0 && key.Channel != channel {
				return false
			}
			m.sends[key].Released++
			done = capping.ReleaseDone
			return true
		})
		released = append(released, done)
	}
	return released
}

func (m *model) erase(user capping.UserID) { delete(m.logs, user) }
