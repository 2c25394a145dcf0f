package ops

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"capper/internal/app"
	"capper/internal/capping/pebblestore/database"
	"capper/internal/capping/redisstore"
	"capper/internal/cli"
	"capper/internal/config"
	"capper/internal/ids"
	"capper/internal/live"
	"capper/internal/objects"
	"capper/internal/segments"
	"capper/internal/terminal"
)

// MigrateCommand is the command `capper migrate`.
type MigrateCommand struct {
	cli.Service
	Config string `required:"" placeholder:"FILE" help:"Configuration file that the service will use after the migration, with store.kind: redis."`
	Work   string `required:"" placeholder:"DIR" help:"Working directory for this migration only, on a disk with space for three copies of the embedded store. Use the same directory each time you run the command."`
	Finish string `placeholder:"DIR" help:"Directory of the embedded store (store.embedded.path), to finish the migration after the service has stopped. The command first renames this directory, so that no service can use the directory again."`
}

// The type "migrated" is the output of a migration pass with --json.
type migrated struct {
	Result
	Changes  int     `json:"changes,omitempty"` // number of live changes of sets
	Finished bool    `json:"finished"`
	Moved    string  `json:"moved,omitempty"` // new directory name of the embedded store
	Seconds  float64 `json:"seconds"`
}

// Help returns the help text below the flags.
func (c *MigrateCommand) Help() string {
	return "Copies recorded sends, and changes of sets by API calls, from the embedded store (the local database) of " +
		"a running service to Redis. The command reads the copies back and compares them. The command does not copy " +
		"the counts of messages and the logs of pacers. Each further run copies what has changed since the previous " +
		"run. At the end, stop the service, run the command with --finish, and start the service with the " +
		"configuration file of --config. The API key needs the scope admin. If the service has an admin listener " +
		"(server.admin_listen), --url must name this listener."
}

// The method Run makes one pass of the migration from the embedded store to Redis.
func (c *MigrateCommand) Run(ctx context.Context, on *terminal.Streams) (err error) {
	started := time.Now()
	cfg, err := config.Load(c.Config)
	if err != nil {
		return terminal.WithStatus(terminal.BadInput, err)
	}
	if cfg.Store.Kind != config.Redis {
		return terminal.WithStatus(terminal.BadInput, fmt.Errorf(
			"%s: store.kind: must be redis, got %s: "+
				"--config must name the configuration that the service uses after the migration",
			c.Config, cfg.Store.Kind))
	}
	work, err := openWork(c.Work, c.Finish != "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, work.close()) }()
	if err := c.fetch(ctx, cfg, work); err != nil {
		return err
	}
	users, err := c.compareIDs(ctx, on, cfg, work.ids)
	if err != nil {
		return errors.Join(err, work.dropNext())
	}
	target, err := openTarget(ctx, cfg, work, users)
	if err != nil { // removes the unused copy, so that repeated attempts do not leave many copies
		return errors.Join(err, work.dropNext())
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	if err := work.note(func(s *state) { s.Begun = true }); err != nil {
		return err
	}
	now, err := c.source(work)
	if err != nil {
		return err
	}
	done := migrated{Finished: c.Finish != ""}
	pass := Pass{Now: now, Last: work.last, Unfinished: work.unfinished, Target: target,
		Images: work.ids != (database.IDs{}), Retention: cfg.Policy.Retention(target.ClockTolerance() * 2)}
	if done.Result, err = bring(ctx, &pass, on); err != nil {
		return err
	}
	if from, ok := now.(live.Store); ok {
		if done.Changes, err = CopyChanges(ctx, from, target); err != nil {
			return terminal.Hinted(err, "the records in Redis remain; run the pass again")
		}
	}
	if err := alone(ctx, target); err != nil {
		return err
	}
	if err := work.end(); err != nil {
		return err
	}
	if done.Finished {
		done.Moved = migratedDir(work.state.Finishing)
	}
	done.Seconds = time.Since(started).Seconds()
	return c.print(on, &done)
}

// The function "bring" runs one pass of the migration, and shows the progress of the pass.
func bring(ctx context.Context, pass *Pass, on *terminal.Streams) (Result, error) {
	progress := terminal.NewProgress(on, terminal.Users)
	defer progress.Stop()
	progress.Step("copying logs to Redis", 0)
	pass.Progress = func(r *Result) { progress.Reach(r.Users, "") }
	result, err := pass.Run(ctx)
	if errors.Is(err, ErrDiffers) {
		return result, terminal.Hinted(err, "stop all users of this Redis, then empty it and start again with "+
			"another --work")
	}
	return result, terminal.Hinted(err, "the records in Redis remain; run the pass again")
}

// The method "fetch" downloads a copy of the running service's embedded store to the working directory, unless the pass
// is the last pass. The method "fetch" returns an error if the configuration changes the numeric id of a channel.
func (c *MigrateCommand) fetch(ctx context.Context, cfg *config.Config, work *work) error {
	if c.Finish == "" {
		api, err := c.Client()
		if err != nil {
			return err
		}
		if err := work.fetch(ctx, api); err != nil {
			return c.HintedAdmin(err)
		}
	} else if err := work.lookFor(c.Finish); err != nil {
		return err
	}
	err := cfg.KeepsChannels(c.Config, work.state.Channels)
	if err != nil && c.Finish == "" {
		err = errors.Join(err, work.dropNext())
	}
	return terminal.WithStatus(terminal.BadInput, err)
}

// The method "source" returns the store that the pass reads: the embedded store in the last pass, and a copy in every
// other pass.
func (c *MigrateCommand) source(work *work) (Source, error) {
	if c.Finish != "" {
		return work.openFinished(c.Finish)
	}
	return work.open(work.path(nextCopy))
}

func (c *MigrateCommand) print(on *terminal.Streams, done *migrated) error {
	if c.JSON {
		return terminal.JSON(on.Out, done)
	}
	on.Say("%d users with %d sends are in Redis: %d logs were read back and are equal (%d of them rewritten), %d "+
		"are unchanged since the last pass; %.1f s",
		done.Users, done.Sends, done.Verified, done.Replaced, done.Same, done.Seconds)
	on.Say("%d changes that calls made to sets are in Redis too, and were read back; counts of messages and logs of "+
		"pacers are not copied", done.Changes)
	if !done.Finished {
		on.Say("the embedded store is still in use: run passes until few logs change, then stop the service and add " +
			"--finish DIR")
		return nil
	}
	on.Say("the embedded store was renamed to %s; start the service with %s", done.Moved, c.Config)
	return nil
}

// lookingTime is the time limit for reading the location of the segments.
const lookingTime = 30 * time.Second

// compareIDs checks that the configuration and the segments have the same kind and key of user ids as the store.
// compareIDs returns the number of ids in the segments; 0 means that the number is unknown.
func (c *MigrateCommand) compareIDs(ctx context.Context, on *terminal.Streams, cfg *config.Config, are database.IDs) (
	users int, err error) {
	kind := cmp.Or(are.Kind, ids.Dense.String())
	if cfg.IDs != "" && cfg.IDs != kind {
		return 0, c.otherIDs("ids: is "+cfg.IDs, kind)
	}
	ctx, cancel := context.WithTimeout(ctx, lookingTime)
	defer cancel()
	place := "segments.source: the location " + cfg.Segments.Source
	at, err := objects.Open(ctx, cfg.Segments.Source, cfg.Segments.S3)
	var live *segments.Manifest
	if err == nil {
		live, err = segments.ReadLiveManifest(ctx, at)
	}
	switch {
	case err != nil:
		on.Warn(fmt.Sprintf("%s cannot be read, so its ids are not compared with those of the store: %s", place, err))
	case live.IDs == nil && kind == ids.Dense.String():
	case live.IDs == nil:
		return 0, c.otherIDs(place+" has dense ids", kind)
	case live.IDs.Kind != kind:
		return 0, c.otherIDs(place+" has ids of the kind "+live.IDs.Kind, kind)
	case live.IDs.Check != are.Check:
		return 0, c.otherIDs(fmt.Sprintf("%s has another key for its ids (check %s)", place, live.IDs.Check),
			fmt.Sprintf("%s with the check %s", kind, are.Check))
	default:
		users = int(live.IDs.Count)
	}
	return users, nil
}

// otherIDs returns the error for a configuration with another kind or key of user ids than the store.
func (c *MigrateCommand) otherIDs(found, kind string) error {
	return terminal.WithStatus(terminal.BadInput, fmt.Errorf(
		"%s: %s, but the embedded store has ids of the kind %s: "+
			"a migration cannot change the kind or the hash key of ids",
		c.Config, found, kind))
}

// openTarget opens the Redis store to which the migration copies. The first pass of a migration creates the Redis
// store, sized for about the given number of users. If Redis already contains a store before the first pass, the pass
// fails.
func openTarget(ctx context.Context, cfg *config.Config, work *work, users int) (*redisstore.Store, error) {
	options, err := app.RedisOptions(cfg.Store.Redis)
	if err != nil {
		return nil, err
	}
	known := work.state.Begun
	options.MustExist = known
	options.IDs = redisstore.IDs{Kind: work.ids.Kind, Check: work.ids.Check, Users: users}
	target, err := redisstore.Open(ctx, options)
	if err != nil && known {
		return nil, terminal.Hinted(err, "if the Redis of this migration was emptied or lost data, start with an "+
			"empty Redis and another --work")
	}
	if err != nil {
		return nil, err
	}
	if !known && !target.Made() {
		return nil, errors.Join(terminal.Hinted(errors.New(
			"this Redis already contains a store: a migration needs an empty Redis"),
			"if the store belongs to this migration, use the same --work; otherwise use another Redis, or empty "+
				"this one if its data is not needed"), target.Close())
	}
	if err := errors.Join(alone(ctx, target), target.Announce(ctx, cfg.Policy)); err != nil {
		return nil, errors.Join(err, target.Close())
	}
	return target, nil
}

// The constant "ghost" is the maximum time for which Redis lists a killed service instance, or a killed migration pass,
// as running.
const ghost = 40 * time.Second

// The function "alone" returns an error if a running service already uses the Redis store.
func alone(ctx context.Context, target *redisstore.Store) error {
	for started := time.Now(); ; {
		fleet := target.Health(ctx).Fleet
		if fleet == nil || fleet.Instances <= 1 {
			return nil
		}
		if time.Since(started) > ghost {
			return terminal.Hinted(fmt.Errorf(
				"%d other instances use this Redis: no service may use this Redis during the migration",
				fleet.Instances-1),
				"stop these instances, empty Redis, and start again with another --work")
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
	}
}
