package pebblestore

import (
	"errors"
	"log/slog"
	"sync"

	"github.com/cockroachdb/pebble/v2"

	"capper/internal/capping"
	"capper/internal/capping/pebblestore/database"
)

// The type messageCounts keeps the counts of sends and decisions of all messages, and is safe for concurrent use.
type messageCounts struct {
	db     *database.DB
	logger *slog.Logger
	memory *capping.MessageMemory
	told   sync.Once // limits the log to one line about unreadable counts

	mu    sync.Mutex // protects the fields below, and the records and the list of messages in the database
	known map[id]known
}

func newMessages(db *database.DB, logger *slog.Logger, memory *capping.MessageMemory) *messageCounts {
	return &messageCounts{db: db, logger: logger, memory: memory, known: make(map[id]known)}
}

// noteUnreadable logs, only the first time, that counts of a message cannot be read. Unreadable counts make no call
// fail.
func (c *messageCounts) noteUnreadable(err error) {
	c.told.Do(func() {
		c.logger.Error(
			"counts of a message cannot be read: capper still decides about its users, but no longer counts them",
			"error", err.Error())
	})
}

// The method "each" calls the function "yield" for each database key with the prefix, until "yield" returns an error.
// The arguments "key" and "value" are valid only until "yield" returns.
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
