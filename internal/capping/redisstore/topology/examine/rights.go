package examine

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"capper/internal/capping/redisstore/fault"
	"capper/internal/capping/redisstore/topology/connect"
)

// ofKeys reports whether the denial is of keys and not of a command.
func ofKeys(text string) bool {
	return strings.Contains(text, "access one of the keys") || strings.Contains(text, "access at least one of the keys")
}

// rights is what the user of the connection lacks.
type rights struct {
	commands []string // as an ACL names them
	keys     bool     // the keys of the namespace
}

// note takes what became of a command.
func (r *rights) note(command, text string) {
	switch {
	case !fault.IsDenial(text):
	case ofKeys(text):
		r.keys = true
	case !slices.Contains(r.commands, command):
		r.commands = append(r.commands, command)
	}
}

// err is the refusal, nil when nothing is lacking.
func (r *rights) err(who string, e *Rules) error {
	user := e.Username
	if user == "" {
		user = "default"
	}
	var lacking []string
	if len(r.commands) > 0 {
		lacking = append(lacking, "may not run "+strings.Join(r.commands, ", "))
	}
	if r.keys {
		lacking = append(lacking, "may not use the keys "+e.Namespace+":*")
	}
	if lacking == nil {
		return nil
	}
	return fmt.Errorf("%s: the user %q %s: the rights that are needed are in deploy/redis.acl", who, user, strings.Join(lacking, " and "))
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
	if err := connect.Exec(ctx, pipe); err != nil {
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
