package topology

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"capper/internal/capping/redisstore/fault"
)

// ofKeys reports whether the denial is of keys and not of a command.
func ofKeys(text string) bool {
	for _, said := range []string{"access one of the keys", "access at least one of the keys", "access a key"} {
		if strings.Contains(text, said) {
			return true
		}
	}
	return false
}

// rights is what the user of the connection lacks.
type rights struct {
	commands []string // as an ACL names them
	unknown  []string // that the server does not know under these names, the same
	keys     bool     // the keys of the namespace
}

// note takes what became of a command.
func (r *rights) note(command, text string) {
	switch {
	case !fault.IsDenial(text):
	case ofKeys(text):
		r.keys = true
	case fault.IsUnknown(text):
		r.unknown = append(r.unknown, command)
	case !slices.Contains(r.commands, command):
		r.commands = append(r.commands, command)
	}
}

// err is the refusal, nil when nothing is lacking.
func (r *rights) err(who string, e *Rules) error {
	return errors.Join(r.denied(who, e), r.missing(who))
}

// denied is that the user may not do something.
func (r *rights) denied(who string, e *Rules) error {
	var lacking []string
	if len(r.commands) > 0 {
		lacking = append(lacking, "may not run "+strings.Join(r.commands, ", "))
	}
	if r.keys {
		lacking = append(lacking, "may not use the keys "+e.Namespace+":* to read and to write")
	}
	if lacking == nil {
		return nil
	}
	return fmt.Errorf("%s: the user %q %s: deploy/redis.acl lists the required permissions", who, e.user(),
		strings.Join(lacking, " and "))
}

// missing is that the server lacks commands, whoever asks.
func (r *rights) missing(who string) error {
	if len(r.unknown) == 0 {
		return nil
	}
	slices.Sort(r.unknown)
	return fmt.Errorf("%s: does not know %s: remove its rename-command from the configuration of the server, and "+
		"restrict users by permissions instead; only config may be renamed",
		who, strings.Join(slices.Compact(r.unknown), ", "))
}

// Trial is a key to try rights with.
type Trial struct {
	Who     string // the server is called in what is said
	Key     string // that nobody uses
	Held    bool   // the server is known to hold the key's slot
	Cluster bool   // the commands of clusters are needed
}

// command is one that is tried, and the name that an ACL has for it.
type command struct {
	name string
	args []any
}

//go:embed rights.lua
var rightsSource string

// commands are those that are sent as such.
func (r *Rules) commands(t Trial) []command {
	probe, keys := redis.NewScript(rightsSource), 0
	if t.Held {
		keys = 1
	}
	all := []command{
		{"script|load", []any{"script", "load", rightsSource}},
		{"evalsha", []any{"evalsha", probe.Hash(), keys, t.Key}},
		{"hget", []any{"hget", t.Key, "0"}},
		{"hgetall", []any{"hgetall", t.Key}},
		{"zrevrangebyscore", []any{"zrevrangebyscore", t.Key, "0", "0"}},
		{"get", []any{"get", t.Key}},
		{"set", []any{"set", t.Key, "", "xx"}},
		{"time", []any{"time"}},
		{"info", []any{"info", "server"}},
	}
	if !r.Unreplicated {
		all = append(all, command{"wait", []any{"wait", 0, 1}})
	}
	if t.Cluster {
		for _, what := range []string{"slots", "info", "nodes"} {
			all = append(all, command{"cluster|" + what, []any{"cluster", what}})
		}
		all = append(all, command{"asking", []any{"asking"}})
	}
	return all
}

// Rights tries every command that the store uses, and is the refusal for those
// that the user may not run, or nil. err is that the server could not be asked.
func (r *Rules) Rights(ctx context.Context, client *redis.Client, t Trial) (lacking, err error) {
	pipe := client.Pipeline()
	commands := r.commands(t)
	replies := make([]*redis.Cmd, len(commands))
	for i, command := range commands {
		replies[i] = pipe.Do(ctx, command.args...)
	}
	if err := Exec(ctx, pipe); err != nil {
		return nil, err
	}
	var found rights
	for i, reply := range replies {
		var refused redis.Error
		switch err := reply.Err(); {
		case err == nil:
			found.noteScript(commands[i].name, reply)
		case errors.As(err, &refused):
			found.note(commands[i].name, refused.Error())
		default:
			return nil, err
		}
	}
	return found.err(t.Who, r), nil
}

// noteScript takes what the script tells of its commands.
func (r *rights) noteScript(name string, command *redis.Cmd) {
	if name != "evalsha" {
		return
	}
	failed, _ := command.StringSlice() // another reply tells nothing
	for i := 0; i+1 < len(failed); i += 2 {
		r.note(strings.ToLower(failed[i]), failed[i+1])
	}
}
