package pebblestore

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/sstable"
)

// lockDirectory makes the directory and takes its lock, which the operating
// system gives back when the process ends, however it ends.
func lockDirectory(config Config) (io.Closer, error) {
	if config.Path == "" {
		return nil, errors.New("path: must not be empty")
	}
	if err := config.fs.MkdirAll(config.Path, 0o755); err != nil {
		return nil, err
	}
	lock, err := config.fs.Lock(config.fs.PathJoin(config.Path, "LOCK"))
	if err == nil {
		return lock, nil
	}
	return nil, explainLock(err)
}

// explainLock tells a lock that another process holds, for which systems have
// two numbers, from a file that this process may not open.
func explainLock(err error) error {
	if opening := (*fs.PathError)(nil); errors.As(err, &opening) {
		return err
	}
	if errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES) || err.Error() == "lock held by current process" {
		return fmt.Errorf("another capper has it open (%w): stop that one, or give this one a path of its own", err)
	}
	return err
}

// options fit small random reads and writes: small blocks, whole-key bloom
// filters on all levels but the large bottom one, where they would push
// everything else out of the block cache, and no compression, as tokens are
// random bytes.
func (s *Store) options(config Config) *pebble.Options {
	logger := databaseLogger{s}
	options := &pebble.Options{
		FS: s.disk, Logger: logger,
		FormatMajorVersion:          pebble.FormatValueSeparation,
		CacheSize:                   config.CacheBytes/4 + memTables*memTableSize, // it holds the write buffers, too
		MemTableSize:                memTableSize,
		MemTableStopWritesThreshold: memTables,
		L0StopWritesThreshold:       40,
		LBaseMaxBytes:               256 << 20,
		EventListener: &pebble.EventListener{
			BackgroundError: s.background,
			FlushEnd:        func(info pebble.FlushInfo) { s.flushed(info.Err) },
			DataCorruption: func(info pebble.DataCorruptionInfo) {
				s.metrics.errors.WithLabelValues("corruption").Inc()
				s.logger.Error("the embedded store has a damaged file", "file", info.Path, "error", fmt.Sprint(info.Details))
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

// databaseLogger is Pebble's voice in the log.
type databaseLogger struct{ store *Store }

func (l databaseLogger) Infof(format string, args ...any) {
	l.store.logger.Debug("pebble", slog.String("says", fmt.Sprintf(format, args...)))
}

func (l databaseLogger) Errorf(format string, args ...any) {
	l.store.logger.Error("pebble", slog.String("says", fmt.Sprintf(format, args...)))
}

// Fatalf must not return, and its caller holds who knows which mutexes, so that
// it must not be unwound either. It stays here, in a store that is out of
// service; whoever waits for it is told so.
func (l databaseLogger) Fatalf(format string, args ...any) {
	_ = l.store.wreck(fmt.Errorf(format, args...))
	select {}
}
