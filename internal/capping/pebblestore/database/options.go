package database

import (
	"fmt"
	"log/slog"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/sstable"
)

// The method "options" returns Pebble options for a database with small reads and writes at random keys. The blocks of
// the database's tables are small. All levels of the database except the bottom level have whole-key Bloom filters.
// Bloom filters of the bottom level would displace everything else from the block cache. Compression is off, because
// large parts of the values are tokens (random bytes).
func (d *DB) options(config Config) *pebble.Options {
	logger := pebbleLogger{d}
	options := &pebble.Options{
		FS: d.disk, Logger: logger,
		FormatMajorVersion:          pebble.FormatValueSeparation,
		CacheSize:                   config.CacheBytes + memTables*memTableSize, // includes the write buffers
		MemTableSize:                memTableSize,
		MemTableStopWritesThreshold: memTables,
		L0StopWritesThreshold:       40,
		LBaseMaxBytes:               256 << 20,
		EventListener: &pebble.EventListener{
			BackgroundError: d.reportBackground,
			FlushEnd:        func(info pebble.FlushInfo) { d.noteFlush(info.Err) },
			DataCorruption: func(info pebble.DataCorruptionInfo) {
				d.config.CountError("corruption")
				d.config.Logger.Error("the embedded store has a damaged file", "file", info.Path, "error",
					fmt.Sprint(info.Details))
			},
		},
	}
	bottom := len(options.Levels) - 1
	for i := range options.Levels {
		options.Levels[i].BlockSize = 8 << 10
		options.Levels[i].Compression = func() *sstable.CompressionProfile { return sstable.NoCompression }
		if i < bottom {
			options.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
		}
	}
	options.Levels[bottom].FilterPolicy = pebble.NoFilterPolicy
	return options
}

// memTables and memTableSize are the number and the size of the buffers that hold writes before a flush to tables.
const (
	memTables    = 3
	memTableSize = 64 << 20
)

// A pebbleLogger passes the log messages of Pebble to the log of the store.
type pebbleLogger struct{ db *DB }

func (l pebbleLogger) Infof(format string, args ...any) {
	l.db.config.Logger.Debug("pebble", slog.String("says", fmt.Sprintf(format, args...)))
}

func (l pebbleLogger) Errorf(format string, args ...any) {
	l.db.config.Logger.Error("pebble", slog.String("says", fmt.Sprintf(format, args...)))
}

// Fatalf must not return, because Pebble expects that Fatalf ends the process. Fatalf must not end its goroutine,
// because the calling Pebble code may hold mutexes. Fatalf therefore takes the store out of service and then blocks for
// ever. Callers of the store get an error immediately.
func (l pebbleLogger) Fatalf(format string, args ...any) {
	_ = l.db.isolate(fmt.Errorf(format, args...))
	select {}
}
