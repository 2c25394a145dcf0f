package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"capper/client"
	"capper/client/api"
	"capper/internal/cli"
	"capper/internal/ids"
	"capper/internal/terminal"
)

// releaseCommand is the command `capper release AUDIENCE`, or `capper release --all` for all users of a message.
type releaseCommand struct {
	cli.Service
	audience
	MessageID string `required:"" placeholder:"ID" help:"Id of the message whose sends the command cancels, in the namespace of the API key."`
	Channel   string `help:"Channel of the sends that the command cancels. Default: the sends of the message on all channels."`
	All       bool   `help:"Cancel all sends of the message, without a list of users: the service finds the users in its audit, the log of all decisions."`
	Namespace string `placeholder:"NAME" help:"Namespace of the message. Use this flag only with --all, and only if the API key has no namespace. Default: no namespace."`
}

// The method Run removes recorded sends of a message, because these sends did not take place. A second run of the
// command has no further effect.
func (c *releaseCommand) Run(ctx context.Context, on *terminal.Streams) error {
	if c.All {
		return c.releaseAll(ctx, on)
	}
	if c.Namespace != "" {
		return terminal.Misuse(errors.New("--namespace requires --all"))
	}
	if err := c.check(); err != nil {
		return terminal.Misuse(err)
	}
	service, err := c.Client()
	if err != nil {
		return err
	}
	scheme, err := c.Scheme(ctx, service)
	if err != nil {
		return c.interrupted(err)
	}
	if scheme.Kind() == ids.Dense || c.Expression != "" {
		request, users, err := c.request(ctx, on, service)
		if err != nil {
			return err
		}
		return c.release(on, users, func(add func(*client.ReleaseResult) error) error {
			return service.ReleaseAll(ctx, request, add)
		})
	}
	list, err := c.ids(ctx, on, scheme)
	if err != nil {
		return err
	}
	return c.release(on, int64(list.Len()), func(add func(*client.ReleaseResult) error) error {
		return list.Release(ctx, service, client.ReleaseRequest{MessageID: c.MessageID, Channel: c.Channel}, add)
	})
}

// The method "release" runs the function "calls", which makes the release calls and passes each response to "add". The
// method "release" shows the progress of the calls, and prints the sum of the responses.
func (c *releaseCommand) release(on *terminal.Streams, users int64,
	calls func(add func(*client.ReleaseResult) error) error) error {
	shown := terminal.NewProgress(on, terminal.Users)
	shown.Step("release", users)
	start := time.Now()
	var sum api.ReleaseSummary
	err := calls(func(batch *client.ReleaseResult) error {
		sum.Add(&batch.Summary)
		shown.Reach(int64(sum.Requested), fmt.Sprintf("%d released", sum.Released))
		return nil
	})
	shown.Stop()
	if err != nil {
		return c.interrupted(err)
	}
	return c.report(on, &sum, time.Since(start))
}

// The method "report" prints the sum over all responses to release calls.
func (c *releaseCommand) report(on *terminal.Streams, sum *api.ReleaseSummary, took time.Duration) (err error) {
	if c.JSON {
		err = terminal.JSON(on.Out, releaseReport{c.whom(), *sum})
	} else {
		err = terminal.Table(on.Out, terminal.Left,
			[]any{"requested", sum.Requested, fmt.Sprintf("in %.2f s", took.Seconds())},
			[]any{"released", sum.Released}, []any{"absent", sum.Absent, "had no such send"},
			[]any{"unavailable", sum.Unavailable})
	}
	if err == nil && sum.Unavailable > 0 {
		err = terminal.Hinted(undecided(sum.Unavailable), cli.StatusSays+
			"; then run the same command again; repeating a release is safe")
	}
	return err
}

// releaseAll removes all recorded sends of the message.
func (c *releaseCommand) releaseAll(ctx context.Context, on *terminal.Streams) error {
	if c.audience != (audience{}) {
		return terminal.Misuse(errors.New(
			"--all must not be combined with an audience, because --all releases every send of the message"))
	}
	return cli.Release(ctx, on, &c.Service, &client.MessageRelease{MessageID: c.MessageID, Channel: c.Channel,
		Namespace: c.Namespace})
}

// releaseBatch is the maximum number of users in a release call, for ids that are not dense 32-bit numbers.
// releaseCalls is the number of simultaneous release calls.
const releaseBatch, releaseCalls = 100_000, 4

// The method "ids" returns the users in the file, for ids that are not dense 32-bit numbers.
func (c *releaseCommand) ids(ctx context.Context, on *terminal.Streams, scheme *ids.Scheme) (*cli.IDs, error) {
	list, err := c.list(ctx, on, scheme)
	if err != nil {
		return nil, err
	}
	return &cli.IDs{UserList: list, Batch: releaseBatch, Parallel: releaseCalls}, nil
}

// releaseReport is the output of the release command with --json.
type releaseReport struct {
	*whom
	api.ReleaseSummary
}

// The method "request" returns the release request of the command, and the number of users in the request. The users
// come from an audience expression, or from a file of dense ids (32-bit numbers).
func (c *releaseCommand) request(ctx context.Context, on *terminal.Streams,
	service *client.Client) (r *client.ReleaseRequest, users int64, err error) {
	r = &client.ReleaseRequest{MessageID: c.MessageID, Channel: c.Channel}
	if c.Expression == "" {
		if r.Bitmap, err = c.read(ctx, on); err != nil {
			return nil, 0, err
		}
		return r, int64(r.Bitmap.GetCardinality()), nil
	}
	parts, err := c.parts(ctx, service)
	if err != nil {
		return nil, 0, c.Hinted(err)
	}
	r.Audience, err = c.Audience(c.Expression)
	return r, int64(parts.Users), err
}

// The method "interrupted" adds advice to the error of a release that ended early.
func (c *releaseCommand) interrupted(err error) error {
	if client.HasCode(err, client.CodeGone) {
		return terminal.Hinted(err, "run the same command again without --generation, and release users who have "+
			"left the audience since from a file; repeating a release is safe")
	}
	if errors.As(err, new(*client.Error)) && !client.Passing(err) { // a repeated call would get the same error
		return c.Hinted(err)
	}
	return terminal.Hinted(c.Hinted(err), "run the same command again"+c.pinned()+"; repeating a release is safe")
}
