package topology

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"capper/internal/capping/redisstore/fault"
)

// The variable "loaded" lists the Redis commands that the writes of the store's scripts leave in an append-only file.
// From version 7 on, Redis loads the append-only file with the rights of the user "default". If the user "default" may
// not run one of the commands, EXEC rejects the whole transaction, and the server starts without the transaction's
// writes.
var loaded = [][]any{
	{"hset", "0", "0"}, {"hdel", "0"}, {"hincrby", "0", "1"}, {"pexpireat", "1"}, {"set", "0"}, {"setrange", "0", "0"},
	{"zadd", "0", "0"}, {"zremrangebyscore", "0", "0"}, {"del"}, {"unlink"},
}

// The method "loading" asks a server whether the server's user "default" may run all commands that scripts write to an
// append-only file.
func (r *Rules) loading(ctx context.Context, pipe redis.Pipeliner) []*redis.Cmd {
	var asked []*redis.Cmd
	for _, write := range loaded {
		args := append([]any{"acl", "dryrun", "default", write[0], r.Namespace + ":RIGHTS"}, write[1:]...)
		asked = append(asked, pipe.Do(ctx, args...))
	}
	return asked
}

// The method Loads checks whether the server would drop records when it loads its append-only file after a restart. The
// result "lacking" of Loads lists the commands that the user "default" may not run. If the rights of the user "default"
// could not be read, the result "err" is the reason.
func (r *Rules) Loads(ctx context.Context, client *redis.Client) (lacking []string, err error) {
	pipe := client.Pipeline()
	info, asked := pipe.Info(ctx, "everything"), r.loading(ctx, pipe)
	if err := Exec(ctx, pipe); err != nil {
		return nil, err
	}
	if facts := ParseInfo(info.Val()); !dropsDenied(facts) {
		return nil, info.Err()
	}
	return deniedLoads(asked)
}

// deniedLoads returns the denied commands from the replies to the commands of the method "loading". Each reply of the
// server is "OK", or a sentence that names the missing right.
func deniedLoads(asked []*redis.Cmd) (lacking []string, err error) {
	for i, reply := range asked {
		text, err := reply.Text()
		if err != nil {
			return nil, err
		}
		name, _ := loaded[i][0].(string)
		if text != "OK" && strings.Contains(text, "key") {
			name += " (on the keys of capper)"
		}
		if text != "OK" && !slices.Contains(lacking, name) {
			lacking = append(lacking, name)
		}
	}
	return lacking, nil
}

// dropsDenied reports whether the server checks the rights of a user while it loads an append-only file. Redis 6 and
// Valkey 9 load an append-only file without a check of rights.
func dropsDenied(facts Facts) bool {
	if facts["aof_enabled"] == "0" && facts["loading"] != "1" { // aof_enabled is 0 while a server loads its data
		return false
	}
	if valkey := facts["valkey_version"]; valkey != "" {
		return major(valkey) < 9
	}
	return major(facts["redis_version"]) != 6
}

// The function "major" returns the number at the start of a version text, or 0 without such a number.
func major(version string) int {
	first, _, _ := strings.Cut(version, ".")
	n, _ := strconv.Atoi(first)
	return n
}

func (r *Rules) checkLoading(f *Findings, who string, facts Facts, asked []*redis.Cmd) {
	if !dropsDenied(facts) {
		return
	}
	lacking, err := deniedLoads(asked)
	var refused redis.Error
	switch {
	case errors.As(err, &refused) && fault.IsAuth(err):
		f.Warn("%s: the user %q may not run acl|dryrun: capper cannot check whether the server's user default has "+
			"all permissions, and without them a restart loses recorded sends: add +acl|dryrun to the user's rights "+
			"(deploy/redis.acl), and make sure that the user default has all rights (~* &* +@all)", who, r.user())
	case err != nil:
		f.Warn("%s does not report whether its user default has all permissions, and without them a restart loses "+
			"recorded sends: make sure that it has them (~* &* +@all)", who)
	case len(lacking) > 0:
		f.Refuse("%s: the Redis user default may not run %s: Redis loads its append-only file as that user, so a "+
			"restart would lose recorded sends: set \"user default off ~* &* +@all\" in its ACL (docs/redis.md)",
			who, strings.Join(lacking, ", "))
	}
}
