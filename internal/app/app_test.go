package app

import (
	"context"
	"net"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/config"
	"capper/internal/terminal"
	"capper/internal/testcluster"
	"capper/internal/testkit"
)

// TestStartsAndStopsOnBothStores starts a service on a free port with each store, decides and stops. The next service
// in the same process must find the recorded sends, so the first one must have released everything.
func TestStartsAndStopsOnBothStores(t *testing.T) {
	t.Parallel()
	for kind, store := range map[string]string{
		config.Embedded: onEmbedded(t.TempDir()),
		config.Redis:    onRedis(testcluster.Single(t, testcluster.Options{}).Addrs...),
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			cfg, log := configure(t, store, "")
			for _, allowed := range [][]capping.UserID{{7, 8}, {}} {
				s := begin(t, cfg)
				got, err := filter(t.Context(), s, "promo-"+s.Addr().String(), 7, 8)
				require.NoError(t, err)
				require.Equal(t, allowed, got)
				require.NoError(t, s.Stop())
				require.NoError(t, s.Stop(), "twice is once")
				_, err = net.Dial("tcp", s.Addr().String())
				require.ErrorContains(t, err, "connection refused")
			}
			require.Regexp(t, `(?s)step="load segments from .*step="open the `+kind+
				` store".*step="announce the limits".*step="build the API".*`+
				`step="refresh segments".*step="watch the configuration".*step=listen.*step="ask for calls".*`+
				`msg=stopped step="ask for no more calls".*step="drain the calls".*step="stop watching the configuration".*`+
				`step="stop refreshing segments".*step="close the store"`, log.String())
		})
	}
}

// TestAStartRefusesAnotherChannelNumber checks that both stores remember the numbers of channels in stored sends.
func TestAStartRefusesAnotherChannelNumber(t *testing.T) {
	t.Parallel()
	for kind, store := range map[string]string{
		config.Embedded: onEmbedded(t.TempDir()),
		config.Redis:    onRedis(testcluster.Single(t, testcluster.Options{}).Addrs...),
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			cfg, _ := configure(t, store, "")
			start := func(channels string) error {
				file := cfg.Watcher.File()
				text, err := os.ReadFile(file)
				require.NoError(t, err)
				replace(t, file, regexp.MustCompile(`channels: \{.*\}`).ReplaceAllString(string(text),
					"channels: "+channels))
				cfg.Watcher, err = config.NewWatcher(file, time.Now)
				require.NoError(t, err)
				s, err := Start(t.Context(), cfg)
				if err != nil {
					return err
				}
				_, err = filter(t.Context(), s, "promo", 7)
				require.NoError(t, err)
				return s.Stop()
			}
			require.NoError(t, start("{push: 1, email: 2}"))
			for range 2 {
				require.ErrorContains(t, start("{push: 2, email: 1}"), "announce the limits: channels.")
				require.ErrorContains(t, start("{push: 3}"), "channels.push: has the numeric id 3 in the "+
					"configuration, but in stored sends channel push has the numeric id 1")
				require.NoError(t, start("{push: 1, email: 2, sms: 3}"))
			}
		})
	}
}

// TestTheClockIsInjected checks that decisions use the given clock.
func TestTheClockIsInjected(t *testing.T) {
	t.Parallel()
	cfg, _ := configure(t, onEmbedded(t.TempDir()), "")
	clock := testkit.NewClockAt(time.Now().Add(-2 * time.Hour)) // the store rejects a clock that is a day ahead
	cfg.Clock = clock.Now
	s := begin(t, cfg)
	for _, message := range []string{"first", "second"} {
		got, err := filter(t.Context(), s, message, 7)
		require.NoError(t, err)
		require.Len(t, got, 1, "a day has passed between them")
		clock.Advance(25 * time.Hour)
	}
}

// TestAFailedStartIsUndone checks that a start which fails late leaves neither the store's lock nor background work
// behind.
func TestAFailedStartIsUndone(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	store := onEmbedded(t.TempDir())
	bad, log := configure(t, store, "admin_listen: '"+taken.Addr().String()+"'")
	s, err := Start(t.Context(), bad)
	require.Nil(t, s)
	require.ErrorContains(t, err, "listen: listen on "+taken.Addr().String())
	require.Contains(t, terminal.Hint(err), "another process uses this address")
	require.NotContains(t, err.Error(), "close", "what is undone without a fault is not told")
	require.Regexp(t, `(?s)step="stop watching the configuration".*step="stop refreshing segments".*step="close the store"`, log.String())

	good, _ := configure(t, store, "")
	begin(t, good)

	ended, end := context.WithCancel(t.Context())
	end()
	_, err = Start(ended, bad)
	require.ErrorIs(t, err, context.Canceled)
	_, err = Start(t.Context(), Config{})
	require.ErrorContains(t, err, "Config.Watcher must be set")
}

// TestRunEnds checks that Run ends with its context, and when a listener ends by itself.
func TestRunEnds(t *testing.T) {
	t.Parallel()
	cfg, log := configure(t, onEmbedded(t.TempDir()), "")
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, cfg) }()
	testkit.Eventually(t, func() bool { return strings.Contains(log.String(), `step="ask for calls"`) })
	end()
	require.NoError(t, <-ended)

	s := begin(t, cfg)
	require.NoError(t, s.endpoints[0].listener.Close())
	require.ErrorContains(t, <-s.Failed(), "serve api: ")
}
