package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/signal"
	"syscall"
	"time"

	"capper/internal/app"
	"capper/internal/config"
	"capper/internal/terminal"
	"capper/internal/yamltree"
)

// serveCommand is the command `capper serve`.
type serveCommand struct {
	Config string `short:"c" env:"CAPPER_CONFIG" default:"capper.yaml" help:"Configuration file (YAML) that the service reads at its start and after each change of the file."`
}

// The method Run runs the service until the context ends.
func (c *serveCommand) Run(ctx context.Context, on *terminal.Streams) error {
	watcher, err := terminal.UntilStopped(ctx, 0, func() (*config.Watcher, error) {
		return config.NewWatcher(c.Config,
			time.Now)
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = terminal.Hinted(err, "set --config or CAPPER_CONFIG to the configuration file; in a container, mount "+
			"the file at that path (docs/install.md)")
	}
	if err != nil {
		return terminal.WithStatus(terminal.BadInput, yamltree.Counted(err))
	}
	reload := make(chan os.Signal, 1)
	signal.Notify(reload, syscall.SIGHUP)
	defer signal.Stop(reload)
	return app.Run(ctx, app.Config{Watcher: watcher, Log: on.Err, Clock: time.Now, Reload: reload,
		NotifySocket: os.Getenv(app.Socket)})
}
