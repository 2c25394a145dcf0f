package pebblestore

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"capper/internal/capping"
	"capper/internal/capping/storetest"
	"capper/internal/testkit"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(crashDir); dir != "" {
		fmt.Fprintln(os.Stderr, crashChild(dir, os.Stdout))
		os.Exit(1)
	}
	if dir := os.Getenv(campaignsDir); dir != "" {
		fmt.Fprintln(os.Stderr, campaignsChild(dir, os.Stdout))
		os.Exit(1)
	}
	if dir := os.Getenv(pacingDir); dir != "" {
		fmt.Fprintln(os.Stderr, pacingChild(dir, os.Stdout))
		os.Exit(1)
	}
	if dir := os.Getenv(fullDir); dir != "" {
		fmt.Fprintln(os.Stderr, openFull(dir))
		os.Exit(1)
	}
	if dir := os.Getenv(servedDir); dir != "" {
		fmt.Fprintln(os.Stderr, servedChild(dir))
		os.Exit(1)
	}
	if arguments := os.Getenv(upgradeDir); arguments != "" {
		fmt.Fprintln(os.Stderr, upgradeChild(arguments))
		os.Exit(1)
	}
	os.Exit(testkit.NoLeaks(m.Run(),
		goleak.IgnoreTopFunction("capper/internal/capping/pebblestore/database.pebbleLogger.Fatalf")))
}

func openDefault(t *testing.T, clock func() time.Time) capping.Store {
	s, err := Open(t.Context(), Config{Path: t.TempDir(), Clock: clock, ClockBound: farAhead})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func TestStore(t *testing.T) { storetest.Run(t, openDefault) }

func TestALateReleaseRemovesNoLaterSend(t *testing.T) { storetest.LateRelease(t, openDefault) }
