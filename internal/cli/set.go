package cli

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"capper/client"
	"capper/client/api"
	"capper/internal/ids"
	"capper/internal/terminal"
)

// SetMembersCommand is the command `capper set members SET`.
type SetMembersCommand struct {
	Service
	Set   string `arg:"" help:"Name of the set whose changes the command lists."`
	Since moment `placeholder:"TIME" help:"List only the changes since this age (1h, 30d) or time (2026-11-22, 2026-11-22T10:00:00Z). Default: list all changes."`
}

// Help returns the help text below the flags.
func (c *SetMembersCommand) Help() string {
	return "Lists the latest change of each user whom API calls added to the set or removed from the set. The list " +
		"does not contain users whom only a build has added. A superseded change has no effect, because the build in " +
		"use is newer than the change. After a while, the list omits a superseded change. For a user whose id is not " +
		"in the generation in use (published version of all sets), the list shows image: and the id's image (64-bit " +
		"hash). The API key needs the scope read or lists."
}

// The method Run prints the live changes of the set: the additions and removals of users by API calls.
func (c *SetMembersCommand) Run(ctx context.Context, on *terminal.Streams) error {
	service, err := c.Client()
	if err != nil {
		return err
	}
	scheme, err := c.Scheme(ctx, service)
	if err != nil {
		return err
	}
	since := time.Time{}
	if c.Since.Given() {
		since = c.Since.Instant(time.Now()).Time()
	}
	list := &changeList{on: on, json: c.JSON, rows: [][]any{{"USER", "CHANGE", "SINCE", "CALLER", "STATE"}}}
	if scheme.Kind() == ids.Dense {
		for change, err := range service.SetMembers(ctx, c.Set, since) {
			if err != nil {
				return c.HintedLists(err)
			}
			if err := list.add(change, change.UserID, change); err != nil {
				return err
			}
		}
	} else {
		for change, err := range service.SetMemberIDs(ctx, c.Set, since) {
			if err != nil {
				return c.HintedLists(err)
			}
			user := cmp.Or(change.UserID, "image:"+change.Image)
			of := &api.MemberChange{Change: change.Change, At: change.At, By: change.By, Superseded: change.Superseded}
			if err := list.add(change, user, of); err != nil {
				return err
			}
		}
	}
	if c.JSON {
		return nil
	}
	return printRows(on, list.rows, fmt.Sprintf("no call has changed set %s in this period", c.Set))
}

// changeList prints changes of a set: each change as JSON immediately, or all changes as a table at the end.
type changeList struct {
	on   *terminal.Streams
	json bool
	rows [][]any
}

// The method "add" adds a change of a set to the output. The JSON output contains the argument "answer", and the table
// contains the argument "user".
func (l *changeList) add(answer, user any, change *api.MemberChange) error {
	if l.json {
		return jsonLine(l.on, answer)
	}
	state := "in force"
	if change.Superseded {
		state = "superseded"
	}
	l.rows = append(l.rows, []any{user, change.Change, change.At.UTC().Format(milliseconds), change.By, state})
	return nil
}

// SetListCommand is the command `capper set list`.
type SetListCommand struct{ Service }

// Help returns the help text below the flags.
func (c *SetListCommand) Help() string {
	return "Lists the sets of the generation in use (published version of all sets), and configured sets that no " +
		"build has published. The columns USERS and AS OF describe the published set. The columns ADDED, REMOVED, " +
		"OLDEST and NEWEST describe the changes by API calls that are in force. The column SUPERSEDED shows the " +
		"number of changes by API calls that have no effect, because the published set is newer. The API key needs " +
		"the scope read or lists."
}

// The method Run prints the list of sets that the service knows.
func (c *SetListCommand) Run(ctx context.Context, on *terminal.Streams) error {
	service, err := c.Client()
	if err != nil {
		return err
	}
	list, err := service.Sets(ctx)
	if err != nil {
		return c.HintedLists(err)
	}
	if c.JSON {
		return terminal.JSON(on.Out, list)
	}
	fmt.Fprintf(on.Out, "generation %s\n", shown(list.Generation))
	rows := [][]any{{"SET", "USERS", "AS OF", "ADDED", "REMOVED", "SUPERSEDED", "OLDEST", "NEWEST", "SUPPRESSED",
		"CHANGED BY"}}
	for i := range list.Sets {
		rows = append(rows, setRow(&list.Sets[i]))
	}
	return terminal.Table(on.Out, terminal.Left, rows...)
}

func setRow(s *api.SetInfo) []any {
	row := []any{s.Name, "-", timeOr(s.AsOf), "-", "-", "-", "-", "-", "no", "builds and calls"}
	if s.Users != nil {
		row[1] = *s.Users
	}
	if l := s.Live; l != nil {
		copy(row[3:], []any{l.Additions, l.Removals, l.Superseded, timeOr(l.Oldest), timeOr(l.Newest)})
	}
	if s.Suppressed {
		row[8] = "yes"
	}
	switch {
	case s.OnlyBuilds:
		row[9] = "builds"
	case s.Users == nil:
		row[9] = "calls"
	}
	return row
}

// timeOr returns a time as text, or a dash if the time is nil.
func timeOr(at *time.Time) string {
	if at == nil {
		return "-"
	}
	return at.UTC().Format(milliseconds)
}

// LiveText describes how an API call changed a user's membership in a set, such as "since 2026-11-20T15:31:07.004Z,
// by a call of crm".
func LiveText(m *api.LiveMembership) string {
	return "since " + m.Since.UTC().Format(milliseconds) + ", by a call of " + m.By
}

// HintedLists adds advice to the error of an API call that reads or makes changes of sets.
func (r *Service) HintedLists(err error) error {
	if client.HasCode(err, client.CodeForbidden) {
		return terminal.Hinted(err, "the key in "+KeyVariable+" needs the scope lists, and the set among its "+
			"sets if it "+
			"has any")
	}
	if client.HasCode(err, client.CodeNotFound) {
		return terminal.Hinted(terminal.Misuse(err), "capper set list shows the sets")
	}
	return r.Hinted(err)
}
