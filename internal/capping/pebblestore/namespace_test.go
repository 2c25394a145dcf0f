package pebblestore

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/capping/pebblestore/database"
	"capper/internal/capping/storetest"
)

// TestAStoreFromBeforeNamespaces opens a directory of the last program without namespaces.
func TestAStoreFromBeforeNamespaces(t *testing.T) {
	t.Parallel()
	storetest.RunUpgrade(t, func(t *testing.T, clock func() time.Time) capping.Store {
		path := filepath.Join(t.TempDir(), "log.db")
		require.NoError(t, os.CopyFS(path, os.DirFS("testdata/before-namespaces")))
		s, err := Open(t.Context(), Config{Path: path, Clock: clock, ClockBound: farAhead})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		return s
	})
}

// TestMessagesWithANamespaceLieApart checks that messages with a namespace are not below key 02. An older
// program reads those keys as plain ids of at most 128 bytes. Messages of both kinds must expire.
func TestMessagesWithANamespaceLieApart(t *testing.T) {
	t.Parallel()
	c := storetest.NewClock()
	s, err := Open(t.Context(), Config{Path: t.TempDir(), Clock: c.Now, ClockBound: farAhead})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	plain := capping.Message{ID: "promo"}
	named := capping.Message{Namespace: "growth", ID: "promo"}
	for _, m := range []capping.Message{plain, named} {
		b := benchBatch(m.ID, []capping.UserID{1})
		b.Message, b.Token, b.Retention = m, m.Token(), time.Hour
		require.NoError(t, s.Filter(context.Background(), b, make([]capping.Verdict, 1)))
	}
	kinds := func() (first []byte) {
		it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{database.KeyMessage}})
		require.NoError(t, err)
		for ok := it.First(); ok; ok = it.Next() {
			first = append(first, it.Key()[0])
		}
		require.NoError(t, it.Close())
		return first
	}
	require.Equal(t, []byte{database.KeyMessage, database.KeyNamed}, kinds())
	value, err := s.db.Lookup(messageKey(database.KeyMessage, plain.Token()))
	require.NoError(t, err)
	require.Equal(t, "promo", string(value[8:]))
	found, err := s.Messages(context.Background(), []capping.Token{plain.Token(), named.Token()})
	require.NoError(t, err)
	require.Equal(t, map[capping.Token]capping.Message{plain.Token(): plain, named.Token(): named}, found)

	c.Advance(time.Hour)
	found, err = s.Messages(context.Background(), []capping.Token{plain.Token(), named.Token()})
	require.NoError(t, err)
	require.Empty(t, found)
	_, err = s.sweepStep(t.Context(), []byte{database.KeyLog})
	require.NoError(t, err)
	require.Empty(t, kinds())
}
