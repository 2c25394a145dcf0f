package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// denials are the beginnings of errors for what the user of the connection may
// not do, or what the server does not know, in a command and in a script.
var denials = []string{
	"NOPERM", "ERR unknown command", "ERR unknown subcommand", "ERR Unknown Redis command called from script",
	"ERR The user executing the script can't",
}

func isDenial(text string) bool {
	return slices.ContainsFunc(denials, func(prefix string) bool { return strings.HasPrefix(text, prefix) })
}

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
	case !isDenial(text):
	case ofKeys(text):
		r.keys = true
	case !slices.Contains(r.commands, command):
		r.commands = append(r.commands, command)
	}
}

// err is the refusal, nil when nothing is lacking.
func (r *rights) err(who string, c *Config) error {
	user := c.Username
	if user == "" {
		user = "default"
	}
	var lacking []string
	if len(r.commands) > 0 {
		lacking = append(lacking, "may not run "+strings.Join(r.commands, ", "))
	}
	if r.keys {
		lacking = append(lacking, "may not use the keys "+c.Namespace+":*")
	}
	if lacking == nil {
		return nil
	}
	return fmt.Errorf("%s: the user %q %s: the rights that are needed are in deploy/redis.acl", who, user, strings.Join(lacking, " and "))
}

// trial is a command and the name that an ACL has for it.
type trial struct {
	name string
	args []any
}

// trials are the commands that are sent as such.
func (t *topology) trials(key string, held bool) []trial {
	probe, keys := t.scripts.rights, 0
	if held {
		keys = 1
	}
	all := []trial{
		{"script|load", []any{"script", "load", probe.Source}},
		{"evalsha", []any{"evalsha", probe.SHA, keys, key}},
		{"hget", []any{"hget", key, "0"}},
		{"get", []any{"get", key}},
		{"set", []any{"set", key, "", "xx"}},
		{"time", []any{"time"}},
		{"info", []any{"info", "server"}},
	}
	if !t.config.ReplicaAcks.none() {
		all = append(all, trial{"wait", []any{"wait", 0, 1}})
	}
	if t.cluster {
		for _, what := range []string{"slots", "info", "nodes"} {
			all = append(all, trial{"cluster|" + what, []any{"cluster", what}})
		}
		all = append(all, trial{"asking", []any{"asking"}})
	}
	return all
}

// lackingRights tries every command that the store uses, and is the refusal for
// those that the user may not run, or nil. key is one that nobody uses; where
// the server is known to hold its slot, held is true. err is that the server
// could not be asked.
func (t *topology) lackingRights(ctx context.Context, client *redis.Client, who, key string, held bool) (lacking, err error) {
	pipe := client.Pipeline()
	trials := t.trials(key, held)
	commands := make([]*redis.Cmd, len(trials))
	for i, trial := range trials {
		commands[i] = pipe.Do(ctx, trial.args...)
	}
	if err := execute(ctx, pipe); err != nil {
		return nil, err
	}
	var found rights
	for i, command := range commands {
		var reply redis.Error
		switch err := command.Err(); {
		case err == nil:
			found.noteScript(trials[i].name, command)
		case errors.As(err, &reply):
			found.note(trials[i].name, reply.Error())
		default:
			return nil, err
		}
	}
	return found.err(who, t.config), nil
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

// trialKey is a key of the partition that no bucket has: those have no capital
// letters.
func (t *topology) trialKey(partition int) string { return t.prefixes[partition] + "RIGHTS" }

// trialKey is one of a slot that the node holds. held is false when it holds
// no partition.
func (n *node) trialKey() (key string, held bool) {
	for p := range n.top.layout.Partitions {
		if n.top.route(p) == n {
			return n.top.trialKey(p), true
		}
	}
	return n.top.trialKey(0), false
}
