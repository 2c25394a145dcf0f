package main

import (
	"context"
	"time"

	"capper/internal/app"
	"capper/internal/config"
	"capper/internal/terminal"
	"capper/internal/yamltree"
)

// serveCommand is `capper serve`.
type serveCommand struct {
	Config string `short:"c" default:"capper.yaml" help:"The configuration file."`
}

// Run serves until the context ends.
func (c *serveCommand) Run(ctx context.Context, on *terminal.Streams) error {
	watcher, err := terminal.UntilStopped(ctx, 0, func() (*config.Watcher, error) { return config.NewWatcher(c.Config, time.Now) })
	if err != nil {
		return terminal.WithStatus(terminal.BadInput, yamltree.Counted(err))
	}
	return app.Run(ctx, app.Config{Watcher: watcher, Log: on.Err, Clock: time.Now})
}
