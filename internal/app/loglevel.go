package app

import (
	"fmt"
	"log/slog"
	"strings"
)

// A level is the minimum level of logged messages, which a reload of the configuration can change. A level is safe for
// concurrent use, and reading a level takes almost no time.
type level struct{ now slog.LevelVar }

var _ slog.Leveler = (*level)(nil)

// New returns a minimum log level with the value from the configuration.
func New(configured string) *level {
	l := &level{}
	l.Set(configured)
	return l
}

// The function parse parses the name of a log level.
func parse(name string) (level slog.Level, err error) {
	for _, level := range []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError} {
		if name == Name(level) {
			return level, nil
		}
	}
	return 0, fmt.Errorf("must be one of the log levels debug, info, warn and error, got %q", name)
}

// Name returns the name of a log level as the configuration spells it.
func Name(level slog.Level) string { return strings.ToLower(level.String()) }

// Level implements slog.Leveler.
func (l *level) Level() slog.Level { return l.now.Level() }

// Set sets the minimum log level to the level with the configured name. An unknown name means the level "info".
func (l *level) Set(configured string) {
	level, err := parse(configured)
	if err != nil {
		level = slog.LevelInfo
	}
	l.now.Set(level)
}
