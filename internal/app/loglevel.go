// Package loglevel is from which level on the process logs, which a reload of the configuration changes.
package app

import (
	"fmt"
	"log/slog"
	"strings"
)

// level is the level from which on is logged. It is safe for concurrent use, and its Level
// costs next to nothing.
type level struct{ now slog.LevelVar }

var _ slog.Leveler = (*level)(nil)

// New is the level that the configuration says.
func New(configured string) *level {
	l := &level{}
	l.Set(configured)
	return l
}

// parse reads one of the four names.
func parse(name string) (level slog.Level, err error) {
	for _, level := range []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError} {
		if name == Name(level) {
			return level, nil
		}
	}
	return 0, fmt.Errorf("must be debug, info, warn or error, got %q", name)
}

// Name is the level's name in configurations.
func Name(level slog.Level) string { return strings.ToLower(level.String()) }

// Level implements slog.Leveler.
func (l *level) Level() slog.Level { return l.now.Level() }

// Set puts the level of a configuration in force. An unknown name is info.
func (l *level) Set(configured string) {
	level, err := parse(configured)
	if err != nil {
		level = slog.LevelInfo
	}
	l.now.Set(level)
}
