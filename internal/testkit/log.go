package testkit

import (
	"bytes"
	"io"
	"log/slog"
	"sync"
)

// Log collects log text in memory for a test. Tests may read a Log while other goroutines write to the Log. The zero
// value is an empty Log.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

var _ io.Writer = (*Log)(nil)

// Write appends p to the log.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String returns all text that has been written to the log.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Logger returns a logger that writes text to the Log. The returned logger writes messages of level debug and above.
func (l *Log) Logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}
