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

// ofKeys reports whether the text of a permission error is about keys. If ofKeys returns false, the permission error is
// about a command.
func ofKeys(text string) bool {
	for _, said := range []string{"access one of the keys", "access at least one of the keys", "access a key"} {
		if strings.Contains(text, said) {
			return true
		}
	}
	return false
}

// The type "rights" lists the rights that the store's Redis user lacks.
type rights struct {
	commands []string // names as in an ACL
	unknown  []string // commands that the server does not know under these names
	keys     bool     // access to the keys of the namespace is missing
}

// The method "note" stores the server's reply to a command that tests the Redis user's rights.
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

// The method "err" returns one error about all missing rights of the Redis user, or nil if no right is missing.
func (r *rights) err(who string, e *Rules) error {
	return errors.Join(r.denied(who, e), r.missing(who))
}

// The method "denied" returns an error about the commands and keys that the Redis user may not use.
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
	return fmt.Errorf("%s: the Redis user %q %s: the file deploy/redis.acl lists the required permissions",
		who, e.user(),
		strings.Join(lacking, " and "))
}

// The method "missing" returns an error about the commands that the Redis server does not have.
func (r *rights) missing(who string) error {
	if len(r.unknown) == 0 {
		return nil
	}
	slices.Sort(r.unknown)
	return fmt.Errorf(
		"%s does not know the commands %s: remove rename-command for these commands from the Redis configuration, "+
			"and restrict users by permissions instead (only the command 'config' may have another name)",
		who, strings.Join(slices.Compact(r.unknown), ", "))
}

// A Trial describes a test of the Redis user's rights: the server and the test key.
type Trial struct {
	Who     string // name of the server in messages
	Key     string // a key that the store does not use
	Held    bool   // the server is known to hold the key's slot
	Cluster bool   // the commands of Redis Cluster are needed too
}

// The type "command" is one Redis command that the method Rights tries, with the command's name in an ACL.
type command struct {
	name string
	args []any
}

//go:embed rights.lua
var rightsSource string

// The method "commands" returns the Redis commands that the store sends outside of Lua scripts.
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

// The method Rights tries every Redis command that the store needs, to find missing rights of the store's Redis user.
// If rights are missing, the result "lacking" is an error about these rights. If the server did not answer, the result
// "err" is not nil.
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

// noteScript stores the errors from the script rights.lua, which tries commands inside a Lua script.
func (r *rights) noteScript(name string, command *redis.Cmd) {
	if name != "evalsha" {
		return
	}
	failed, _ := command.StringSlice() // any other reply holds no errors
	for i := 0; i+1 < len(failed); i += 2 {
		r.note(strings.ToLower(failed[i]), failed[i+1])
	}
}
