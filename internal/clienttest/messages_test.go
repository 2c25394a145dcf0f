package clienttest

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/client"
	"capper/client/api"
	"capper/internal/audit/archive"
	"capper/internal/bitmap"
	"capper/internal/capping"
	"capper/internal/messages"
	"capper/internal/server"
)

// audited is an audit that shows so many more users in each call.
type audited struct {
	calls atomic.Uint32
	step  uint32
}

func (*audited) Flush(context.Context) error { return nil }

func (a *audited) Grants(context.Context, capping.Message, capping.Channel) ([]archive.Grants, error) {
	to := a.step * a.calls.Add(1)
	return []archive.Grants{{Channel: 1, Users: bitmap.Range(to-a.step, to), Unknown: bitmap.Of()}}, nil
}

// withMessages makes the service count messages, and read an audit.
func withMessages(t testing.TB, audit *audited) func(*server.Config) {
	return func(cfg *server.Config) {
		store, _ := capping.As[messages.Store](cfg.Capper.Store())
		var err error
		cfg.MessageCounts, err = messages.NewCounter(store, nil, nil)
		require.NoError(t, err)
		if audit != nil {
			cfg.Audit = audit
		}
	}
}

func users(n int) (list []uint32) {
	for i := range n {
		list = append(list, uint32(i))
	}
	return list
}

func TestMessages(t *testing.T) {
	t.Parallel()
	c := newClient(t, client.Config{URL: newCapper(t, nil, withMessages(t, nil))})
	for _, id := range []string{"promo", "a/b c?d#e%2F", "..", ".", "😀"} {
		_, err := c.Filter(t.Context(), &client.FilterRequest{MessageID: id, Channel: "push", Users: users(200)})
		require.NoError(t, err)
		found, err := c.Message(t.Context(), id, "")
		require.NoError(t, err, id)
		require.Equal(t, id, found.MessageID)
		require.Equal(t, int64(200), found.Channels[0].Asked)
		found, err = c.MessageUsers(t.Context(), id, "")
		require.NoError(t, err, id)
		require.Equal(t, int64(200), found.Channels[0].Asked)
		require.Nil(t, found.Channels[0].Users, "there is no audit")
	}
	list, err := c.Messages(t.Context(), client.MessagesQuery{Since: time.Now().Add(-time.Hour), Channel: "push",
		Max: 2})
	require.NoError(t, err)
	require.Len(t, list.Messages, 2)
	require.True(t, list.More)
	_, err = c.Message(t.Context(), "nobody", "")
	require.True(t, client.HasCode(err, client.CodeNotFound))
	_, err = c.ReleaseMessage(t.Context(), &client.MessageRelease{MessageID: "promo"}, nil)
	require.True(t, client.HasCode(err, client.CodeConflict))
	require.ErrorContains(t, err, "audit.to")
}

// A release goes on while calls give something back.
func TestReleaseMessageGoesOn(t *testing.T) {
	t.Parallel()
	audit := &audited{step: 100}
	c := newClient(t, client.Config{URL: newCapper(t, nil, withMessages(t, audit))})
	_, err := c.Filter(t.Context(), &client.FilterRequest{MessageID: "promo", Channel: "push", Users: users(250)})
	require.NoError(t, err)
	var told []int64
	given, err := c.ReleaseMessage(t.Context(), &client.MessageRelease{MessageID: "promo"},
		func(r *api.ReleasedMessage) { told = append(told, r.Missing) })
	require.NoError(t, err)
	require.Equal(t, int64(250), given.Released)
	require.Zero(t, given.Missing)
	require.Equal(t, []int64{150, 50, 0}, told)
	again, err := c.ReleaseMessage(t.Context(), &client.MessageRelease{MessageID: "promo", Channel: "push"}, nil)
	require.NoError(t, err)
	require.Zero(t, again.Released)
}

// What the audit never shows is told as missing, after a few calls.
func TestReleaseMessageEnds(t *testing.T) {
	t.Parallel()
	audit := &audited{}
	var calls atomic.Int64
	c := newClient(t, client.Config{Attempts: 3, URL: newCapper(t, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			calls.Add(1)
			h.ServeHTTP(w, r)
		})
	}, withMessages(t, audit))})
	_, err := c.Filter(t.Context(), &client.FilterRequest{MessageID: "promo", Users: users(250)})
	require.NoError(t, err)
	given, err := c.ReleaseMessage(t.Context(), &client.MessageRelease{MessageID: "promo"}, nil)
	require.NoError(t, err)
	require.Equal(t, int64(250), given.Missing)
	require.Equal(t, int64(4), calls.Load())
}
