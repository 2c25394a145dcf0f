package config

import (
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"
	"time"

	"capper/internal/capping"
	"capper/internal/segments"
	"capper/internal/server/gate"
	"capper/internal/yamltree"
)

func (r *reader) server(v yamltree.Value) {
	s := &r.Server
	v.Object(map[string]yamltree.Field{
		"listen":              address(&s.Listen),
		"admin_listen":        address(&s.AdminListen),
		"tls":                 r.tls,
		"call_timeout":        duration(&s.Bounds.CallTimeout, 10*time.Millisecond, 5*time.Minute),
		"stop_delay":          duration(&s.StopDelay, 0, 5*time.Minute),
		"stop_timeout":        duration(&s.StopTimeout, 0, 10*time.Minute),
		"max_json_users":      yamltree.Within(&s.Bounds.JSONUsers, 1, 1_000_000),
		"max_bitmap_users":    yamltree.Within(&s.Bounds.BitmapUsers, 1, 10_000_000),
		"max_body":            yamltree.Size(&s.Bounds.BodyBytes, 1<<10, 1<<30),
		"max_in_flight_users": yamltree.Within(&s.Bounds.InFlightUsers, 1, 1_000_000_000),
		"bounds":              func(v yamltree.Value) { readBounds(v, &s.Bounds) },
		"host_names":          func(v yamltree.Value) { s.HostNames = readHostNames(v) },
		"without_keys":        yamltree.Bool(&s.WithoutKeys),
		"api_keys":            func(v yamltree.Value) { s.Access.Keys = readKeys(v) },
		"rate_limits":         r.rateLimits,
	})
	s.Bounds = s.Bounds.WithDefaults()
	if s.Bounds.InFlightBytes < s.Bounds.BodyBytes {
		v.FaultOf("bounds.body_bytes", "must be at least max_body, %d bytes, got %d", s.Bounds.BodyBytes,
			s.Bounds.InFlightBytes)
	}
	r.checkAccess(v)
}

// checkAccess checks that the API keys, the clients with rates and the addresses of the listeners are consistent.
func (r *reader) checkAccess(v yamltree.Value) {
	s := &r.Server
	if s.WithoutKeys && len(s.Access.Keys) > 0 {
		v.FaultOf("without_keys", "must not be true if api_keys are set: it confirms a configuration that has none")
	}
	for _, at := range r.clients {
		client := at.Token()
		if !slices.ContainsFunc(s.Access.Keys, func(k gate.Key) bool { return k.Client == client }) {
			at.Fault("must be the client of a key in server.api_keys, got %q", client)
		}
	}
	if _, port, _ := net.SplitHostPort(s.Listen); s.Listen == s.AdminListen && port != "0" {
		v.FaultOf("admin_listen", "must differ from the address of listen, %s", s.Listen)
	}
	if len(s.Access.Keys) == 0 && !gate.IsLoopback(s.Listen) {
		v.FaultOf("api_keys", "is required if listen is not a loopback address: %s is none", s.Listen)
	}
	if len(s.Access.Keys) == 0 && s.AdminListen != "" && !gate.IsLoopback(s.AdminListen) {
		v.FaultOf("api_keys", "is required if admin_listen is not a loopback address: %s is none", s.AdminListen)
	}
}

var hostName = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$`)

func readHostNames(v yamltree.Value) (names []string) {
	v.List(func(v yamltree.Value) {
		var host string
		named(&host, hostName, "must be a host name in lower case, without port, got %q")(v)
		names = append(names, host)
	})
	return names
}

func readBounds(v yamltree.Value, b *gate.Bounds) {
	v.Object(map[string]yamltree.Field{
		"body_bytes":   yamltree.Size(&b.InFlightBytes, 1<<20, 1<<40),
		"answer_bytes": yamltree.Size(&b.AnswerBytes, 1<<20, 1<<40),
		"gzip_ratio":   yamltree.Within(&b.GzipRatio, 1, 2000),
		"min_rate":     yamltree.Size(&b.MinRate, 1<<10, 1<<30),
		"connections":  yamltree.Within(&b.Connections, 1, 1_000_000),

		"permit_records_per_client": yamltree.Within(&b.PermitRecords.Client, 1, 1_000_000_000),
		"permit_records":            yamltree.Within(&b.PermitRecords.All, 1, 1_000_000_000),
	})
}

func (r *reader) tls(v yamltree.Value) {
	files := &r.Server.TLS
	given := v.Object(map[string]yamltree.Field{"cert_file": r.path(&files.CertFile),
		"key_file": r.path(&files.KeyFile)})
	if !given["cert_file"] || !given["key_file"] {
		v.Fault("must have both cert_file and key_file")
	}
}

// readKeys reads the API keys from a configuration file. Package gate checks the keys.
func readKeys(v yamltree.Value) (keys []gate.Key) {
	var places []yamltree.Value
	v.List(func(v yamltree.Value) {
		keys = append(keys, readKey(v))
		places = append(places, v)
	})
	for _, fault := range gate.Conflicts(keys) {
		if at := places[fault.Key]; fault.Field != "" {
			at.FaultOf(fault.Field, "%s", fault.Rule)
		} else {
			at.Fault("%s", fault.Rule)
		}
	}
	return keys
}

func readKey(v yamltree.Value) (key gate.Key) {
	before := len(v.Faults())
	fields := map[string]yamltree.Value{}
	text := func(field string, to *string) yamltree.Field {
		return func(v yamltree.Value) {
			fields[field] = v
			yamltree.Text(to)(v)
		}
	}
	given := v.Object(map[string]yamltree.Field{
		"client":    text("client", &key.Client),
		"namespace": text("namespace", &key.Namespace),
		"id":        text("id", &key.ID),
		"sha256":    text("sha256", &key.SHA256),
		"sets": func(v yamltree.Value) {
			fields["sets"] = v
			key.Sets = readKeySets(v)
		},
		"scopes": func(v yamltree.Value) {
			fields["scopes"] = v
			v.List(func(v yamltree.Value) {
				fields[v.Path()[strings.LastIndex(v.Path(), ".")+1:]] = v
				scope, _ := v.Text()
				key.Scopes = append(key.Scopes, gate.Scope(scope))
			})
		},
	})
	noted := v.Faults()[before:]
	for _, fault := range key.Faults() {
		field, _, _ := strings.Cut(fault.Field, "[")
		at, read := fields[fault.Field]
		switch {
		case !given[field]:
			v.FaultOf(field, "is required")
		case read && !slices.ContainsFunc(noted, func(f yamltree.Fault) bool { return f.Path == at.Path() }):
			at.Fault("%s", fault.Rule)
		}
	}
	return key
}

// readKeySets reads the list of sets that an API key may change. If the list is empty, readKeySets records an error,
// because the meaning of an empty list would be unclear. An API key without a list may change all sets, but an empty
// list looks as if the API key may change no set.
func readKeySets(v yamltree.Value) (names []string) {
	before := len(v.Faults())
	names = setNames(v, func(v yamltree.Value, name string) {
		if strings.HasPrefix(name, segments.ZonePrefix) {
			v.Fault("must not be a set of a time zone, because only builds change such sets, got %q", name)
		}
	})
	if len(names) == 0 && len(v.Faults()) == before {
		v.Fault("must name at least one set; leave the key out to allow all sets")
	}
	return names
}

func (r *reader) rateLimits(v yamltree.Value) {
	rules := &r.Server.Access
	v.Object(map[string]yamltree.Field{
		"default": func(v yamltree.Value) { rules.Rate = readRate(v) },
		"clients": func(v yamltree.Value) {
			v.Pairs(func(key string, at, val yamltree.Value) {
				rules.Rates[key] = readRate(val)
				r.clients = append(r.clients, at)
			})
		},
	})
}

func readRate(v yamltree.Value) (rate capping.Rate) {
	given := v.Object(map[string]yamltree.Field{
		"users_per_second": yamltree.Within(&rate.UsersPerSecond, 1, 1_000_000_000),
		"burst":            yamltree.Within(&rate.Burst, 1, 1_000_000_000),
	})
	if !given["users_per_second"] {
		v.FaultOf("users_per_second", "is required")
	}
	return rate
}

// Listeners returns the URLs of a service with this configuration on the local machine, beginning with the URL of the
// key "listen". Listeners ignores errors in other sections of the configuration file. A service that has rejected a
// changed configuration file still runs, and the command for health checks must find this service.
func Listeners(file string) (urls []string, err error) {
	data, err := yamltree.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	public, admin, scheme := defaults().Server.Listen, "", "http"
	root, fault := tree(data)
	if fault != nil {
		public, admin, scheme = listenersIn(string(data), public)
	} else {
		root.Key("server", func(server yamltree.Value) {
			server.Key("listen", address(&public))
			server.Key("admin_listen", address(&admin))
			server.Key("tls", func(yamltree.Value) { scheme = "https" })
		})
	}
	for _, listen := range []string{public, admin} {
		if listen == "" {
			continue
		}
		host, port, err := net.SplitHostPort(listen)
		if err != nil || port == "0" {
			return nil, fmt.Errorf(
				"%s: server: address %q must have a fixed port: "+
					"with port 0, the system chooses another port at each start",
				file, listen)
		}
		if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
			host = "127.0.0.1"
		}
		urls = append(urls, scheme+"://"+net.JoinHostPort(host, port))
	}
	return urls, nil
}

var (
	serverText  = regexp.MustCompile(`(?ms)^server:(.*?)(?:^\w|\z)`)
	commentText = regexp.MustCompile(`(?m)(^|\s)#.*$`)
	keyText     = regexp.MustCompile(`(?:^|[{,\s])(listen|admin_listen|cert_file):\s*["']?([^\s"',}]+)`)
)

// listenersIn finds the settings of the listeners in a configuration text that is not valid YAML, such as a file that
// somebody is editing.
func listenersIn(text, listen string) (public, admin, scheme string) {
	public, scheme = listen, "http"
	section := serverText.FindString(commentText.ReplaceAllString(text, ""))
	for _, found := range keyText.FindAllStringSubmatch(section, -1) {
		switch key, value := found[1], found[2]; key {
		case "listen":
			public = value
		case "admin_listen":
			admin = value
		case "cert_file":
			scheme = "https"
		}
	}
	return public, admin, scheme
}
