package main

import (
	"time"

	"capper/internal/app"
	"capper/internal/config"
	"capper/internal/console"
)

// serveCommand is `capper serve`.
type serveCommand struct {
	Config string `short:"c" default:"capper.yaml" help:"The configuration file."`
}

// Run serves until the context ends.
func (c *serveCommand) Run(on *env) error {
	watcher, err := console.UntilStopped(on.ctx, 0, func() (*config.Watcher, error) { return config.NewWatcher(c.Config, time.Now) })
	if err != nil {
		return badInput{err}
	}
	return app.Run(on.ctx, watcher, on.stderr)
}
