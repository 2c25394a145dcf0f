package config

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAMisplacedKeyIsSentHome(t *testing.T) {
	t.Parallel()
	for key, home := range map[string]string{
		"listen": "server.listen", "api_keys": "server.api_keys", "source": "segments.source",
		"cache_dir": "segments.cache_dir", "kind": "store.kind", "redis": "store.redis", "default": "limits.default",
		"level": "log.level", "spool": "audit.spool", "endpoint": "tracing.endpoint",
	} {
		_, err := Parse("f", []byte(key+": x\n"+minimal))
		require.ErrorContains(t, err, "f:1:1: "+key+`: is not a known key here; did you mean "`+home+`"?`)
	}
	for _, key := range []string{"nonsense", "twilio", "max", "\"a: b\""} {
		_, err := Parse("f", []byte(key+": x\n"+minimal))
		require.ErrorContains(t, err, "is not a known key; known are audiences, audit", key)
	}
}
