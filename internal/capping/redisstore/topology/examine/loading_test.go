package examine

import (
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/capping/redisstore/topology/connect"
)

func TestWhichServersDropWhatTheirDefaultUserMayNotDo(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		facts connect.Facts
		drops bool
	}{
		{connect.Facts{"redis_version": "6.2.14", "aof_enabled": "1"}, false},
		{connect.Facts{"redis_version": "7.0.15", "aof_enabled": "1"}, true},
		{connect.Facts{"redis_version": "8.0.2", "aof_enabled": "1"}, true},
		{connect.Facts{"redis_version": "8.0.2", "aof_enabled": "0"}, false},
		{connect.Facts{"redis_version": "7.2.4", "valkey_version": "8.1.1", "aof_enabled": "1"}, true},
		{connect.Facts{"redis_version": "7.2.4", "valkey_version": "9.1.2", "aof_enabled": "1"}, false},
		{connect.Facts{}, true},
	} {
		require.Equal(t, test.drops, dropsDenied(test.facts), "%v", test.facts)
	}
}
