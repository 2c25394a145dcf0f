package testkit

import (
	"bytes"
	"io"
	"log/slog"
	"sync"
)

// Log collects written text. Tests may read it while other goroutines write. The zero value is an empty log.
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

// String returns the text that was written so far.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Logger returns a logger that writes text to the log, from level debug on.
func (l *Log) Logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}
