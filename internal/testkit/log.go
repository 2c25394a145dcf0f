package testkit

import (
	"bytes"
	"io"
	"log/slog"
	"sync"
)

// Log keeps what is written to it, to be read while the writing goes on. The
// zero value is an empty one.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

var _ io.Writer = (*Log)(nil)

// Write appends to the log.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String is all that was written so far.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Logger writes its records to the log as text, from the level debug on.
func (l *Log) Logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}
