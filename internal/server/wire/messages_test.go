package wire

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/client/api"
	"capper/internal/capping"
	"capper/internal/messages"
)

// decidedOf returns decisions about users in one segment, of whom every second one is denied.
func decidedOf(users int) *capping.Decisions {
	d := &capping.Decisions{
		Users: make([]capping.UserID, users), Names: []string{"active", "new"},
		Policy: &capping.Policy{Version: "0123456789ab"},
		Codes:  make([]uint8, users), Verdicts: make([]capping.Verdict, users),
	}
	for i := range d.Verdicts {
		d.Codes[i], d.Verdicts[i].Outcome = 2, capping.Allowed
		if i%2 == 1 {
			d.Verdicts[i] = capping.Verdict{Outcome: capping.Denied, By: capping.ByHoldout}
		}
	}
	return d
}

func TestAnswersOfCallsAddUp(t *testing.T) {
	t.Parallel()
	var got messages.Answers
	for at := range capping.Instant(3) {
		d := decidedOf(5)
		AddAnswers(&got, d, Summarize(d), 10-at)
	}
	require.Equal(t, messages.Answers{
		Calls: 3, Asked: 15, Allowed: 9, First: 8, Last: 10, Configs: []string{"0123456789ab"},
		Denied: map[string]int64{api.LimitHoldout: 6}, Segments: map[string]messages.SegmentAnswers{"new": {Asked: 15,
			Allowed: 9, Denied: 6}},
	}, got)
}

// BenchmarkCounter measures the cost of counting the answers of a call.
func BenchmarkCounter(b *testing.B) {
	for _, users := range []int{1, 4} {
		b.Run(fmt.Sprint("users=", users), func(b *testing.B) {
			c, err := messages.NewCounter(struct{ messages.Store }{}, nil, nil)
			require.NoError(b, err)
			d := decidedOf(users)
			s, key := Summarize(d), messages.Key{Message: capping.Message{ID: "promo"}, Channel: 1}
			b.ReportAllocs()
			for b.Loop() {
				c.Add(key, int64(users), func(to *messages.Answers) { AddAnswers(to, d, s, 5) })
			}
		})
	}
}

func TestMessageCursors(t *testing.T) {
	t.Parallel()
	for _, at := range []messages.Position{
		{}, {Value: 5}, {Value: math.MaxInt64, Key: messages.Key{Message: capping.Message{ID: "ü/\x00"}, Channel: 255}},
		{Value: 7, Key: messages.Key{Message: capping.Message{Namespace: strings.Repeat("n", capping.MaxName),
			ID: strings.Repeat("x", capping.MaxMessageID)}}},
	} {
		for sort, order := range map[string]messages.Order{"last_call": messages.ByLast, "asked": messages.ByAsked} {
			parameters := map[string]string{"sort": sort, "cursor": MessageCursor(order, &at)}
			got, after, err := MessageOrder(parameters)
			require.NoError(t, err)
			require.Equal(t, order, got)
			require.Equal(t, &at, after)
			parameters["sort"] = map[string]string{"last_call": "asked", "asked": "last_call"}[sort]
			_, _, err = MessageOrder(parameters)
			require.ErrorContains(t, err, "another sort")
		}
	}
	order, after, err := MessageOrder(nil)
	require.NoError(t, err)
	require.Nil(t, after)
	require.Equal(t, messages.ByLast, order)
}
