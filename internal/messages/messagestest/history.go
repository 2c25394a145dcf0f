package messagestest

import (
	"math/rand/v2"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/messages"
)

// randomCalls makes random calls for a few messages with the same users, and then compares the store's counts with the
// model.
func randomCalls(f *fixture) {
	seed := rand.Uint64()
	f.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	users := f.users(3000)
	var keys []messages.Key
	for _, namespace := range []string{"", "growth", "crm"} {
		message := f.key(namespace, 0).Message
		for _, channel := range []capping.Channel{0, 1, 2, 255} {
			keys = append(keys, messages.Key{Message: message, Channel: channel})
			f.filter(keys[len(keys)-1], 3, users[:capping.BulkUsers]...)
		}
	}
	asked := map[messages.Key]int64{}
	for range 300 {
		key, part := keys[r.IntN(len(keys))], drawn(r, users)
		f.clock.Advance(time.Duration(r.IntN(1000)) * time.Millisecond)
		switch draw := r.IntN(10); {
		case draw < 5:
			f.filter(key, r.IntN(5), part...)
			f.add(messages.Delta{Key: key, Answers: some(f.now(), int64(len(part)), "v1")})
			asked[key] += int64(len(part))
		case draw < 7:
			f.release(key.Message, key.Channel, part...)
		case draw < 8:
			f.release(key.Message, 0, part...)
		case draw < 9:
			f.erase(part[0])
		default:
			require.Equal(f, *f.model.sends[key], f.campaign(key).Sends)
		}
	}
	f.agree()
	for key, n := range asked {
		require.Equal(f, n, f.campaign(key).Asked)
	}
}

// The function "drawn" returns a random selection of the users: some users in any order, or consecutive users.
func drawn(r *rand.Rand, users []capping.UserID) []capping.UserID {
	if r.IntN(2) == 0 {
		first := r.IntN(len(users))
		return users[first:min(len(users), first+1+r.IntN(1000))]
	}
	var part []capping.UserID
	for _, i := range r.Perm(len(users))[:1+r.IntN(50)] {
		part = append(part, users[i])
	}
	return part
}
