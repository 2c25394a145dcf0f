package fault

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// The variable "replies" lists beginnings of Redis error replies, each with the remedy (next action of the caller) for
// the error.
var replies = []struct {
	prefix string
	remedy Remedy
}{
	{"NOSCRIPT", Remedy{Kind: Script, Now: true}},
	{"MOVED ", Remedy{Kind: Moved, Now: true, Refresh: true}},
	{"ASK ", Remedy{Kind: Ask, Now: true}},
	{"TRYAGAIN", Remedy{Kind: TryAgain, Now: true}},
	{"CLUSTERDOWN", Remedy{Kind: Down, Refresh: true}},
	{"READONLY", Remedy{Kind: Down, Refresh: true}},
	{"LOADING", Remedy{Kind: Down, Refresh: true}},
	{"MASTERDOWN", Remedy{Kind: Down, Refresh: true}},
	{"BUSY", Remedy{Kind: Down}},
	{"MISCONF", Remedy{Kind: Down}},
	// When a master becomes a replica, Redis ends a running WAIT with UNBLOCKED. To a later WAIT, Redis replies with
	// the next error in the list.
	{"UNBLOCKED", Remedy{Kind: Down, Unknown: true, Refresh: true}},
	{"ERR WAIT cannot be used with replica", Remedy{Kind: Down, Unknown: true, Refresh: true}},
	{"ERR max number of clients", Remedy{Kind: Down}},
	{"NOREPLICAS", Remedy{Kind: Acks}},
	{"CLOCKSKEW ", Remedy{Kind: Clock}},
	{"OOM", Remedy{Kind: Memory, Final: true}},
	{"NOAUTH", Remedy{Kind: Auth, Final: true}},
	{"WRONGPASS", Remedy{Kind: Auth, Final: true}},
}

// The variable "denials" lists the beginnings of permission errors, for commands and for scripts.
var denials = []string{
	// Scripts return the second prefix up to Redis 7.0, and the third prefix since Redis 7.2 and in Valkey.
	"NOPERM", "ERR The user executing the script can't", "ERR ACL failure in script",
}

// The variable "unknowns" lists the beginnings of Redis error replies about commands that the server does not have.
var unknowns = []string{
	"ERR unknown command", "ERR unknown subcommand",
	"ERR Unknown Redis command called from script", "ERR Unknown command called from script", // Redis; Valkey
	"ERR Unknown subcommand or wrong number", // Redis 6
}

// The variable "denied" is the remedy (next action of the caller) for a permission error. With the remedy "denied", the
// topology looks for the missing right at its next refresh.
var denied = Remedy{Kind: Auth, Final: true, Refresh: true, Vet: true}

// IsDenial reports whether a Redis error reply means that the Redis user may not use a command or a key, or that the
// server does not have a command.
func IsDenial(reply string) bool {
	return IsUnknown(reply) || begins(reply, denials)
}

// IsUnknown reports whether a Redis error reply is about a command that the server does not have.
func IsUnknown(reply string) bool { return begins(reply, unknowns) }

func begins(reply string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(reply, prefix) })
}

// ofReply returns the remedy (next action of the caller) for the text of a Redis error reply.
func ofReply(text string) Remedy {
	for _, r := range replies {
		if !strings.HasPrefix(text, r.prefix) {
			continue
		}
		rest := text[len(r.prefix):]
		switch r.remedy.Kind {
		case Moved, Ask:
			if _, addr, ok := strings.Cut(rest, " "); ok {
				r.remedy.Addr = addr
			}
		case Clock:
			off, _, _ := strings.Cut(rest, " ")
			ms, _ := strconv.ParseInt(off, 10, 64)
			r.remedy.Off = time.Duration(ms) * time.Millisecond
		}
		return r.remedy
	}
	if IsDenial(text) {
		return denied
	}
	return Remedy{Kind: Server, Unknown: true}
}
