package redisstore

import (
	"encoding/hex"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/capping/redisstore/script"
	"capper/internal/capping/storetest"
	"capper/internal/testcluster"
	"capper/internal/testkit"
)

// The test reads a keyspace of the last program without namespaces: buckets, messages and the format marker.
func TestAKeyspaceFromBeforeNamespaces(t *testing.T) {
	t.Parallel()
	storetest.RunUpgrade(t, func(t *testing.T, clock func() time.Time) capping.Store {
		config := Config{Addrs: testcluster.Shared(t), Namespace: namespace(), Clock: clock}
		restore(t, openTest(t, config), config.Namespace, "testdata/before-namespaces.txt")
		return openTest(t, config)
	})
}

// restore writes the keys of a dump, one value per line, into a namespace of the store's servers. Server times in the
// dump become now.
func restore(t *testing.T, s *Store, namespace, dump string) {
	text, err := os.ReadFile(dump)
	require.NoError(t, err)
	partitions := map[string]int{}
	for p, prefix := range s.prefixes {
		partitions[strings.TrimPrefix(prefix, s.config.Namespace+":")] = p
	}
	partitions["{"+script.FormatTag+"}:"] = s.keyspace.FormatPartition()
	for line := range strings.Lines(string(text)) {
		var kind, key, field, encoded string
		if strings.HasPrefix(line, "hset") {
			_, err = fmt.Sscanf(line, "%s %s %q %s", &kind, &key, &field, &encoded)
		} else {
			_, err = fmt.Sscanf(line, "%s %s %s", &kind, &key, &encoded)
		}
		require.NoError(t, err, line)
		value, err := hex.DecodeString(encoded)
		require.NoError(t, err)
		key = strings.TrimPrefix(key, "fc:")
		partition, known := partitions[key[:strings.Index(key, "}")+1]+":"]
		require.True(t, known, key)
		key = namespace + ":" + key
		if strings.Contains(key, script.FormatTag) || strings.HasSuffix(key, "-sign") {
			value = serverTime.ReplaceAll(value, strconv.AppendInt(nil, time.Now().UnixMilli(), 10))
		}
		client := admin(t, s.top.Route(partition).Addr())
		if kind == "set" {
			require.NoError(t, client.Set(t.Context(), key, value, time.Hour).Err())
			continue
		}
		require.NoError(t, client.HSet(t.Context(), key, field, value).Err())
		require.NoError(t, client.Expire(t.Context(), key, time.Hour).Err())
	}
}

// serverTime matches a time that a server has shown: milliseconds since 1970.
var serverTime = regexp.MustCompile(`\b\d{13}\b`)

// The stored messages have the form that doc.go describes: plain ids, and the namespace before the id where there is
// one.
func TestStoredMessages(t *testing.T) {
	t.Parallel()
	s := openShared(t, nil)
	for text, m := range map[string]capping.Message{"promo": {ID: "promo"}, "\xffgrowth\xffpromo": {Namespace: "growth",
		ID: "promo"}} {
		require.EventuallyWithT(t, func(c *assert.CollectT) { // no call waits for it for long
			filter(t, s, identity{message: m}.batch(spread(capping.BulkUsers)))
			client := s.top.Route(s.messagePartition(m.Token())).Client()
			stored, err := client.Get(t.Context(), s.messageKey(m.Token())).Result()
			require.NoError(c, err)
			require.Equal(c, text, stored)
		}, testkit.Patience, 10*time.Millisecond)
	}
}
