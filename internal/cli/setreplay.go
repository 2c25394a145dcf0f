package cli

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"capper/client"
	"capper/client/api"
	"capper/internal/audit"
	"capper/internal/audit/archive"
	"capper/internal/terminal"
)

// SetReplayCommand is the command `capper set replay`.
type SetReplayCommand struct {
	Service
	Place
	Span
	Set []string `placeholder:"SET" help:"Name of a set whose lost changes the command repeats; may be given several times. Default: the changes of all sets."`
}

// replayCalls is the number of simultaneous calls with which the command repeats changes of sets.
const replayCalls = 16

// Help returns the help text below the flags.
func (c *SetReplayCommand) Help() string {
	return "Repeats API calls that changed sets, each with its original time. The command reads these calls from the " +
		"audit (the log of all calls). Use the command if the store has lost changes of sets: after you restored a " +
		"backup, or after Redis lost data and all instances restarted at the same time. The repeated changes do not " +
		"replace later changes or newer builds. Repeating the command is safe. The command cannot repeat the changes " +
		"of erased users. If a call was answered with status 503 and never repeated, the command skips this call, " +
		"because the audit does not say whether the call added or removed the users. The API key needs the scope " +
		"lists."
}

// The method Run reads from the audit the API calls that changed sets, and repeats these calls.
func (c *SetReplayCommand) Run(ctx context.Context, on *terminal.Streams) error {
	since, until, err := c.instants(time.Now())
	if err != nil {
		return terminal.Misuse(err)
	}
	from, err := c.archive(ctx)
	if err != nil {
		return err
	}
	service, err := c.Client()
	if err != nil {
		return err
	}
	scheme, err := c.Scheme(ctx, service)
	if err != nil {
		return err
	}
	if err := from.IDs().Same(audit.IDsOf(scheme)); err != nil {
		return terminal.WithStatus(terminal.BadInput, err)
	}
	q := archive.Query{Since: since, Until: until, Kinds: []audit.Kind{audit.Change}}
	p := &replay{service: service, only: c.Set}
	p.calls.SetLimit(replayCalls)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	r := &reading{archive: from}
	read := r.each(ctx, q, func(record *audit.Record) error { return p.add(ctx, stop, record) })
	if err := p.calls.Wait(); err != nil {
		return c.HintedLists(fmt.Errorf("after %d replayed changes to sets, a call to the service failed: %w",
			p.users.Load(), err))
	}
	if read != nil {
		return read
	}
	if c.JSON {
		err = terminal.JSON(on.Out, map[string]int64{"calls": p.made.Load(), "users": p.users.Load(),
			"superseded": p.superseded.Load(), "unknown_users": p.unknown})
	} else {
		err = terminal.Table(on.Out, terminal.Left, []any{"calls", p.made.Load()}, []any{"users", p.users.Load()},
			[]any{"superseded", p.superseded.Load(), "a later change or build stands"},
			[]any{"unknown", p.unknown, "users of calls whose result was unknown: their callers have to repeat them"})
	}
	if err != nil {
		return err
	}
	return damaged(r.faults)
}

// The type replay repeats the API calls in audit records that changed sets.
type replay struct {
	service                 *client.Client
	only                    []string
	calls                   errgroup.Group
	made, users, superseded atomic.Int64
	unknown                 int64
}

// The method "add" repeats the API call that an audit record describes. If the API call fails, the method "add" calls
// the function "stop".
func (p *replay) add(ctx context.Context, stop func(), record *audit.Record) error {
	if !p.wants(record.Change.Set) {
		return nil
	}
	change := client.SetChange{At: record.Change.At.Time()}
	for i := range record.Groups {
		switch g := &record.Groups[i]; g.Outcome {
		case audit.Added:
			change.Add, change.AddImages = usersOf(g)
		case audit.Removed:
			change.Remove, change.RemoveImages = usersOf(g)
		default:
			p.unknown += int64(g.Count())
		}
	}
	if len(change.Add)+len(change.Remove)+len(change.AddImages)+len(change.RemoveImages) == 0 {
		return nil
	}
	set := record.Change.Set
	p.calls.Go(func() error {
		if ctx.Err() != nil {
			return nil
		}
		changed, err := p.service.ChangeSet(ctx, set, change)
		if err != nil {
			stop()
			return err
		}
		p.count(changed)
		return nil
	})
	return nil
}

// usersOf returns the users in a group of an audit record: dense ids (32-bit numbers), or the id images (64-bit hashes)
// of other ids. usersOf needs no segments generation, because usersOf does not convert id images to ids.
func usersOf(g *audit.Group) (dense []uint32, images []uint64) {
	if g.Users != nil {
		return g.Users.IDs(), nil
	}
	for _, image := range g.Images {
		images = append(images, uint64(image))
	}
	return nil, images
}

func (p *replay) count(changed *api.SetChanged) {
	p.made.Add(1)
	p.users.Add(int64(changed.Added + changed.Removed))
	p.superseded.Add(int64(changed.Superseded))
}

func (p *replay) wants(set string) bool {
	return len(p.only) == 0 || slices.Contains(p.only, set)
}
