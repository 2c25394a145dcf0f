package database

import (
	"fmt"
	"log/slog"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/sstable"
)

// options fit small random reads and writes: small blocks, whole-key bloom
// filters on all levels but the large bottom one, where they would push
// everything else out of the block cache, and no compression, as tokens are
// random bytes.
func (d *DB) options(config Config) *pebble.Options {
	logger := pebbleLogger{d}
	options := &pebble.Options{
		FS: d.disk, Logger: logger,
		FormatMajorVersion:          pebble.FormatValueSeparation,
		CacheSize:                   config.CacheBytes + memTables*memTableSize, // it holds the write buffers, too
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

// Writes wait for their way into files in up to memTables buffers.
const (
	memTables    = 3
	memTableSize = 64 << 20
)

// pebbleLogger is Pebble's voice in the log.
type pebbleLogger struct{ db *DB }

func (l pebbleLogger) Infof(format string, args ...any) {
	l.db.config.Logger.Debug("pebble", slog.String("says", fmt.Sprintf(format, args...)))
}

func (l pebbleLogger) Errorf(format string, args ...any) {
	l.db.config.Logger.Error("pebble", slog.String("says", fmt.Sprintf(format, args...)))
}

// Fatalf must not return, and its caller holds who knows which mutexes, so that
// it must not be unwound either. It stays here, in a store that is out of
// service; whoever waits for it is told so.
func (l pebbleLogger) Fatalf(format string, args ...any) {
	_ = l.db.isolate(fmt.Errorf(format, args...))
	select {}
}
