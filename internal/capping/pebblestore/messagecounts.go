package pebblestore

import (
	"errors"
	"log/slog"
	"sync"

	"github.com/cockroachdb/pebble/v2"

	"capper/internal/capping/pebblestore/database"
)

// Counts are the counts of all campaigns. They are safe for concurrent use.
type messageCounts struct {
	db     *database.DB
	logger *slog.Logger
	told   sync.Once // that something cannot be read

	mu    sync.Mutex // over what follows, and over records and the list
	known map[id]known
}

// New is the counts of an open database.
func newMessages(db *database.DB, logger *slog.Logger) *messageCounts {
	return &messageCounts{db: db, logger: logger, known: make(map[id]known)}
}

// noteUnreadable tells that counts cannot be read, which no call fails for.
func (c *messageCounts) noteUnreadable(err error) {
	c.told.Do(func() {
		c.logger.Error("counts of a message cannot be read: the message is still decided, but no longer counted",
			"error", err.Error())
	})
}

// each calls yield with each key that begins with the prefix, until an error. Both slices
// are valid until yield returns.
func (c *messageCounts) each(prefix []byte, yield func(key, value []byte) error) error {
	it, err := c.db.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: database.After(prefix)})
	if err != nil {
		return err
	}
	for ok := it.First(); ok; ok = it.Next() {
		if err := yield(it.Key(), it.Value()); err != nil {
			return errors.Join(err, it.Close())
		}
	}
	return it.Close()
}
