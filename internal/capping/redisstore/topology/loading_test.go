package topology

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhichServersDropWhatTheirDefaultUserMayNotDo(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		facts Facts
		drops bool
	}{
		{Facts{"redis_version": "6.2.14", "aof_enabled": "1"}, false},
		{Facts{"redis_version": "7.0.15", "aof_enabled": "1"}, true},
		{Facts{"redis_version": "8.0.2", "aof_enabled": "1"}, true},
		{Facts{"redis_version": "8.0.2", "aof_enabled": "0"}, false},
		{Facts{"redis_version": "7.2.4", "valkey_version": "8.1.1", "aof_enabled": "1"}, true},
		{Facts{"redis_version": "7.2.4", "valkey_version": "9.1.2", "aof_enabled": "1"}, false},
		{Facts{}, true},
	} {
		require.Equal(t, test.drops, dropsDenied(test.facts), "%v", test.facts)
	}
}
