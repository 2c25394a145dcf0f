package config

import (
	"encoding/hex"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// defaultBodyBytes is Bounds.BodyBytes, unless four bodies are larger.
const defaultBodyBytes = 512 << 20

func (s *Server) read(v value) {
	s.Bounds.BodyBytes = 0
	v.object(map[string]field{
		"listen":              address(&s.Listen),
		"admin_listen":        address(&s.AdminListen),
		"tls":                 s.TLS.read,
		"call_timeout":        duration(&s.CallTimeout, 10*time.Millisecond, 5*time.Minute),
		"stop_delay":          duration(&s.StopDelay, 0, 5*time.Minute),
		"stop_timeout":        duration(&s.StopTimeout, 0, 10*time.Minute),
		"max_json_users":      within(&s.MaxJSONUsers, 1, 1_000_000),
		"max_bitmap_users":    within(&s.MaxBitmap, 1, 10_000_000),
		"max_body":            size(&s.MaxBody, 1<<10, 1<<30),
		"max_in_flight_users": within(&s.MaxInFlight, 1, 1_000_000_000),
		"bounds":              s.Bounds.read,
		"host_names":          s.readHostNames,
		"without_keys":        boolean(&s.WithoutKeys),
		"api_keys":            s.readKeys,
		"rate_limits":         s.readRateLimits,
	})
	if s.Bounds.BodyBytes == 0 {
		s.Bounds.BodyBytes = max(defaultBodyBytes, 4*s.MaxBody)
	}
	if s.Bounds.BodyBytes < s.MaxBody {
		v.fault("bounds.body_bytes: must be at least max_body, %d bytes, got %d", s.MaxBody, s.Bounds.BodyBytes)
	}
	if s.WithoutKeys && len(s.APIKeys) > 0 {
		v.fault("without_keys: must not be true together with api_keys: it confirms a file without them")
	}
	for _, at := range s.clientKeys {
		client := at.node.GetToken().Value
		if !slices.ContainsFunc(s.APIKeys, func(k APIKey) bool { return k.Client == client }) {
			at.fault("must be the client of one of server.api_keys, got %q", client)
		}
	}
	if _, port, _ := net.SplitHostPort(s.Listen); s.Listen == s.AdminListen && port != "0" {
		v.fault("admin_listen: must be another address than listen, %s", s.Listen)
	}
	if len(s.APIKeys) == 0 && !loopback(s.Listen) {
		v.fault("api_keys: is required when listen is not a loopback address, and %s is not", s.Listen)
	}
	if len(s.APIKeys) == 0 && s.AdminListen != "" && !loopback(s.AdminListen) {
		v.fault("api_keys: is required when admin_listen is not a loopback address, and %s is not", s.AdminListen)
	}
}

var hostName = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$`)

func (s *Server) readHostNames(v value) {
	v.list(func(v value) {
		var host string
		named(&host, hostName, "must be a host name in lower case, without port, got %q")(v)
		s.HostNames = append(s.HostNames, host)
	})
}

func (b *Bounds) read(v value) {
	v.object(map[string]field{
		"body_bytes":   size(&b.BodyBytes, 1<<20, 1<<40),
		"answer_bytes": size(&b.AnswerBytes, 1<<20, 1<<40),
		"gzip_ratio":   within(&b.GzipRatio, 1, 2000),
		"min_rate":     size(&b.MinRate, 1<<10, 1<<30),
		"connections":  within(&b.Connections, 1, 1_000_000),
	})
}

func (t *TLS) read(v value) {
	given := v.object(map[string]field{"cert_file": path(&t.CertFile), "key_file": path(&t.KeyFile)})
	if !given["cert_file"] || !given["key_file"] {
		v.fault("must have both cert_file and key_file")
	}
}

func address(to *string) field {
	return func(v value) {
		s, ok := v.str()
		if !ok {
			return
		}
		_, port, err := net.SplitHostPort(s)
		_, portErr := strconv.ParseUint(port, 10, 16)
		if err != nil || portErr != nil {
			v.fault("must be host:port, port 0 to 65535, got %q", s)
			return
		}
		*to = s
	}
}

// loopback reports whether only this machine can reach the address.
func loopback(addr string) bool {
	host, _, _ := net.SplitHostPort(addr)
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

var keyID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

func (s *Server) readKeys(v value) {
	ids, sums, perClient, first := map[string]bool{}, map[string]bool{}, map[string]int{}, map[string]APIKey{}
	v.list(func(v value) {
		key := readKey(v)
		if ids[key.ID] && key.ID != "" {
			v.fault("must have an id of its own: %q is given twice", key.ID)
		}
		ids[key.ID] = true
		if sum := strings.ToLower(key.SHA256); sum != "" {
			if sums[sum] {
				v.fault("must have a sha256 of its own: this one is given twice")
			}
			sums[sum] = true
		}
		if perClient[key.Client]++; perClient[key.Client] == 3 && key.Client != "" {
			v.fault("must be at most two keys of a client, for rotation; %q has more", key.Client)
		}
		if other, ok := first[key.Client]; !ok {
			first[key.Client] = key
		} else if key.Namespace != other.Namespace && key.Client != "" {
			v.fault("namespace: must be that of the client's other key, %q, got %q: a new key must not make other sends of the ones under way",
				other.Namespace, key.Namespace)
		}
		s.APIKeys = append(s.APIKeys, key)
	})
}

func readKey(v value) (key APIKey) {
	given := v.object(map[string]field{
		"client":    func(v value) { named(&key.Client, name, nameRule)(v) },
		"namespace": func(v value) { named(&key.Namespace, name, nameRule)(v) },
		"id": func(v value) {
			named(&key.ID, keyID, "must be 1 to 64 letters, digits, '_' and '-', got %q")(v)
		},
		"sha256": func(v value) {
			text(&key.SHA256)(v)
			if sum, err := hex.DecodeString(key.SHA256); err != nil || len(sum) != 32 {
				v.fault("must be the 64 hex digits of a SHA-256")
			}
		},
		"scopes": func(v value) {
			v.list(func(v value) {
				var scope string
				oneOf(&scope, "filter", "read", "admin")(v)
				key.Scopes = append(key.Scopes, scope)
			})
			if len(key.Scopes) == 0 && v.isSequence() {
				v.fault("must name a scope of filter, read, admin")
			}
		},
	})
	for _, k := range []string{"client", "id", "sha256", "scopes"} {
		if !given[k] {
			v.fault("%s: is required", k)
		}
	}
	return key
}

func named(to *string, pattern *regexp.Regexp, rule string) field {
	return func(v value) {
		text(to)(v)
		if *to != "" && !pattern.MatchString(*to) {
			v.fault(rule, *to)
		}
	}
}

func (s *Server) readRateLimits(v value) {
	v.object(map[string]field{
		"default": s.RateLimit.read,
		"clients": func(v value) {
			v.pairs(func(key string, at, val value) {
				var limit RateLimit
				limit.read(val)
				s.ClientLimits[key] = limit
				s.clientKeys = append(s.clientKeys, at)
			})
		},
	})
}

func (r *RateLimit) read(v value) {
	given := v.object(map[string]field{
		"users_per_second": within(&r.UsersPerSecond, 1, 1_000_000_000),
		"burst":            within(&r.Burst, 1, 1_000_000_000),
	})
	if !given["users_per_second"] {
		v.fault("users_per_second: is required")
	}
	if !given["burst"] {
		r.Burst = r.UsersPerSecond
	}
}
