package app

import (
	"fmt"
	"log/slog"
	"strings"
)

// level is the minimum level of logged messages, which a reload of the configuration can change. A level is safe for
// concurrent use, and reading it costs next to nothing.
type level struct{ now slog.LevelVar }

var _ slog.Leveler = (*level)(nil)

// New returns a level with the configured value.
func New(configured string) *level {
	l := &level{}
	l.Set(configured)
	return l
}

// parse parses the name of a level.
func parse(name string) (level slog.Level, err error) {
	for _, level := range []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError} {
		if name == Name(level) {
			return level, nil
		}
	}
	return 0, fmt.Errorf("must be debug, info, warn or error, got %q", name)
}

// Name returns the level's name as the configuration writes it.
func Name(level slog.Level) string { return strings.ToLower(level.String()) }

// Level implements slog.Leveler.
func (l *level) Level() slog.Level { return l.now.Level() }

// Set sets the level to a configured name. An unknown name means info.
func (l *level) Set(configured string) {
	level, err := parse(configured)
	if err != nil {
		level = slog.LevelInfo
	}
	l.now.Set(level)
}
