package cli

import (
	"context"
	"errors"

	"capper/client"
	"capper/internal/terminal"
)

// The function Release releases all recorded sends of a message and prints the result.
func Release(ctx context.Context, on *terminal.Streams, service *Service, message *client.MessageRelease) error {
	api, err := service.Client()
	if err != nil {
		return err
	}
	given, err := api.ReleaseMessage(ctx, message, nil)
	switch {
	case client.HasCode(err, client.CodeConflict):
		return terminal.Hinted(err, "name the audience of the message instead: capper release AUDIENCE --message-id …")
	case errors.As(err, new(*client.Error)) && !client.Passing(err): // a repetition gets the same response
		return service.Hinted(err)
	case err != nil:
		return terminal.Hinted(service.Hinted(err), "run the same command again; repeating a release is safe")
	}
	if service.JSON {
		err = terminal.JSON(on.Out, given)
	} else {
		missing := "recorded, but not in the audit"
		if given.AtLeast {
			missing += "; too small or too large, since the store's counts are lower bounds"
		}
		err = terminal.Table(on.Out, terminal.Left,
			[]any{"found", given.Found, "sends in the audit"}, []any{"released", given.Released, ""},
			[]any{"absent", given.Absent, "released before, or forgotten"},
			[]any{"unavailable", given.Unavailable, ""}, []any{"missing", given.Missing, missing})
	}
	if err == nil && given.Unavailable+given.Missing > 0 {
		err = terminal.Hinted(terminal.WithStatus(terminal.Undecided, errors.New(
			"some sends of the message could not be released (cancelled) yet")),
			"run the same command again when the other instances have completed their audit files (audit.roll); "+
				"repeating a release is safe. Missing sends that stay are those of erased users, from before the "+
				"audit, or from the last second of a killed instance: unless the users were erased, release them by "+
				"capper release AUDIENCE --message-id …")
	}
	return err
}
