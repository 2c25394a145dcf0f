package main

import (
	"reflect"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/client/api"
	"capper/internal/cli"
	"capper/internal/config"
)

// Flags have their defaults in tags, where no constant can stand: they agree
// with the service's.
func TestFlagsHaveTheDefaultsOfTheService(t *testing.T) {
	t.Parallel()
	flagDefault := func(command any, field string) string {
		f, ok := reflect.TypeOf(command).FieldByName(field)
		require.True(t, ok, field)
		return f.Tag.Get("default")
	}
	cfg, err := config.Parse("capper.yaml", []byte("segments: {source: segments}\nlimits: {default: {daily: 1}}\n"))
	require.NoError(t, err)
	require.Equal(t, "http://"+cfg.Server.Listen, flagDefault(cli.Service{}, "URL"))
	require.Equal(t, strconv.Itoa(api.MaxUserIDs), flagDefault(filterCommand{}, "Batch"))
}
