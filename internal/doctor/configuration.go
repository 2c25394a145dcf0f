package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"capper/internal/app"
	"capper/internal/config"
	"capper/internal/server/gate"
	"capper/internal/yamltree"
)

// The function "configuration" reads the configuration file again, and reports each error in the file as a finding.
func configuration(s *Subject) check {
	return check{Name: "configuration.file", Look: func(_ context.Context, n *notes) {
		loaded, err := config.Load(s.File)
		var faults *yamltree.Faults
		switch {
		case errors.As(err, &faults):
			for i := range faults.List {
				n.Fail(s.File, faults.List[i].Error(), "correct the line",
					"the service does not start with it, and a reload is rejected")
			}
			return
		case err != nil:
			n.Fail(s.File, err.Error(), "name a file that this user can read", "the service does not start without it")
			return
		}
		n.OK(s.File, "valid, version %s", loaded.Version)
		for _, warning := range loaded.Warnings {
			n.Warn(s.File, warning, "change it, or leave it if it is "+
				"intended", "the setting is allowed but probably a "+
				"mistake")
		}
		for _, missing := range app.MissingFiles(loaded) {
			n.Fail(s.File, missing.Error(), "put the file where the configuration says, readable by the service's user",
				"the service does not start here")
		}
	}}
}

// The function "secrets" checks the read permissions of files with secrets.
func secrets(s *Subject) check {
	return check{Name: "configuration.secrets", Look: func(_ context.Context, n *notes) {
		redis := &s.Config.Store.Redis
		files := map[string]string{
			"server.tls.key_file": s.Config.Server.TLS.KeyFile, "store.redis.password_file": redis.PasswordFile,
			"store.redis.tls.key_file": redis.TLS.KeyFile,
		}
		if s.Config.Console && len(s.Config.Server.Access.Keys) > 0 {
			files["the configuration"] = s.File // the key hashes in this file are secrets of console sessions
		}
		named := 0
		for _, what := range []string{"the configuration", "server.tls.key_file", "store.redis.password_file",
			"store.redis.tls.key_file"} {
			if files[what] != "" {
				named++
				lookAtSecret(n, what, files[what])
			}
		}
		if named == 0 {
			n.Skip("", "the configuration names no file with a secret")
		}
		if s.Config.Store.Kind == config.Redis && redis.PasswordFile == "" && os.Getenv(app.RedisPassword) == "" {
			n.Skip("store.redis", "no password is used: neither $%s nor store.redis.password_file is set",
				app.RedisPassword)
		}
	}}
}

// readableByAll is the set of file mode bits that let every user of the machine read or write a file.
const readableByAll fs.FileMode = 0o006

func lookAtSecret(n *notes, what, file string) {
	about, err := os.Stat(file)
	switch {
	case err != nil:
		n.Fail(what, err.Error(), "put the file there, readable by the service's user",
			"the service does not start without it")
	case about.Mode().Perm()&readableByAll != 0:
		why := "every user of this machine can read and use its secrets"
		if what == "the configuration" {
			why = "a reader of the API key hashes in it can create sessions of the console"
		}
		n.Warn(what, fmt.Sprintf("%s has mode %04o: every user may read it", file, about.Mode().Perm()), "chmod 640 "+
			file+", and set its group to the group of the service's user", why)
	default:
		n.OK(what, "%s has mode %04o", file, about.Mode().Perm())
	}
}

// The function "listeners" checks that no listener serves other machines without encryption.
func listeners(s *Subject) check {
	return check{Name: "configuration.listen", Look: func(_ context.Context, n *notes) {
		server := &s.Config.Server
		for _, l := range [][2]string{{"server.listen", server.Listen}, {"server.admin_listen", server.AdminListen}} {
			switch what, addr := l[0], l[1]; {
			case addr == "":
			case gate.IsLoopback(addr):
				n.OK(what, "%s: only this machine can reach it", addr)
			case server.TLS.CertFile == "":
				n.Warn(what, addr+" can be reached from other machines, without TLS",
					"set server.tls, or listen on loopback behind a proxy with TLS",
					"API keys and user ids can be read on the network")
			default:
				n.OK(what, "%s with TLS", addr)
			}
		}
		if server.AdminListen == "" && !gate.IsLoopback(server.Listen) {
			n.Warn("server.admin_listen", "none: metrics and erasure are on "+server.Listen,
				"set server.admin_listen to an address that only operators can reach",
				"every caller of the API can reach them, as far as keys allow")
		}
	}}
}

// The function "keys" checks whether the scopes of the configured API keys are sensible.
func keys(s *Subject) check {
	return check{Name: "configuration.keys", Look: func(_ context.Context, n *notes) {
		found := s.Config.Server.Access.Keys
		if len(found) == 0 {
			n.OK("", "none: every user of this machine may call")
			return
		}
		holders, clients, fine := map[gate.Scope]int{}, map[string]bool{}, 0
		for i := range found {
			key := &found[i]
			for _, scope := range key.Scopes {
				holders[scope]++
			}
			if slices.Contains(key.Scopes, gate.ScopeFilter) && slices.Contains(key.Scopes, gate.ScopeAdmin) {
				n.Warn("key "+key.ID, "client "+key.Client+" may send and erase: "+scopeText(key.Scopes),
					"give the sender only the scope filter, and give operators a separate key",
					"a leaked key of a sender can erase users")
				continue
			}
			fine++
			clients[key.Client] = true
		}
		if fine > 0 {
			n.OK("", "%d keys of %d clients hold some scopes, and none holds all", fine, len(clients))
		}
		if holders[gate.ScopeFilter] == 0 {
			n.Warn("", "no key has the scope filter", "add a key with scopes: [filter]",
				"no client can call /v1/filter")
		}
	}}
}

func scopeText(scopes []gate.Scope) string {
	texts := make([]string, len(scopes))
	for i, scope := range scopes {
		texts[i] = string(scope)
	}
	return strings.Join(texts, ", ")
}
