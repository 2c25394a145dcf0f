package config

import (
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
)

func (s *Segments) read(v value) {
	given := v.object(map[string]field{
		"source":    source(&s.Source),
		"refresh":   duration(&s.Refresh, 100*time.Millisecond, 24*time.Hour),
		"cache_dir": path(&s.CacheDir),
		"s3": func(v value) {
			var pathStyle bool
			given := v.object(map[string]field{
				"endpoint": endpoint(&s.S3.Endpoint), "region": text(&s.S3.Region), "path_style": boolean(&pathStyle),
			})
			if given["path_style"] {
				s.S3.PathStyle = &pathStyle
			}
		},
	})
	if !given["source"] {
		v.fault("source: is required: a directory or s3://bucket/prefix")
	}
}

func source(to *string) field {
	return func(v value) {
		text(to)(v)
		scheme, rest, found := strings.Cut(*to, "://")
		bucket, _, _ := strings.Cut(rest, "/")
		if found && (scheme != "s3" || bucket == "") || !found && strings.HasPrefix(*to, "s3:") {
			v.fault("must be a directory or s3://bucket/prefix, got %q", *to)
			return
		}
		if !found {
			v.reader.places = append(v.reader.places, place{v, to})
		}
	}
}

func endpoint(to *string) field {
	return func(v value) {
		text(to)(v)
		u, err := url.Parse(*to)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			v.fault("must be a URL such as https://s3.example.com, got %q", *to)
		}
	}
}

func (s *Store) read(v value) {
	given := v.object(map[string]field{
		"kind": oneOf(&s.Kind, Embedded, Redis),
		"embedded": func(v value) {
			v.object(map[string]field{
				"path":       path(&s.Embedded.Path),
				"create":     boolean(&s.Embedded.Create),
				"cache_size": size(&s.Embedded.CacheSize, 1<<20, 1<<40),
			})
		},
		"redis": s.Redis.read,
	})
	if given["redis"] && !given["kind"] {
		v.fault("kind: is required when redis is given: redis uses it, embedded does not")
	}
	if s.Kind == Redis && len(s.Redis.Addrs) == 0 {
		v.fault("redis.addrs: is required when kind is redis")
	}
}

func (r *RedisStore) read(v value) {
	v.object(map[string]field{
		"addrs": func(v value) {
			v.list(func(v value) {
				var addr string
				address(&addr)(v)
				if host, port, err := net.SplitHostPort(addr); err == nil && (host == "" || port == "0" || strings.ContainsAny(host, " \t")) {
					v.fault("must be host:port with a host and a port from 1 to 65535, got %q", addr)
				}
				r.Addrs = append(r.Addrs, addr)
			})
			if len(r.Addrs) == 0 && v.isSequence() {
				v.fault("must name a node")
			}
		},
		"sentinel_master": text(&r.Master),
		"username":        text(&r.Username),
		"password_file":   path(&r.PasswordFile),
		"tls":             r.TLS.read,
		"replica_acks": func(v value) {
			if s, ok := v.peek(); ok && s == "healthy" {
				r.ReplicaAcks = HealthyReplicas
				return
			}
			n, err := strconv.Atoi(v.node.GetToken().Value)
			if _, ok := v.node.(*ast.IntegerNode); !ok || err != nil || n < 0 || n > 5 {
				v.fault("must be healthy or a number from 0 to 5, got %s", v.describe())
				return
			}
			r.ReplicaAcks = n
		},
		"clock_skew":           duration(&r.ClockSkew, 0, time.Minute),
		"allow_no_append_only": boolean(&r.AllowNoAppendOnly),
		"create":               boolean(&r.Create),
		"password": func(v value) {
			v.fault("must not be in the file: set CAPPER_REDIS_PASSWORD in the environment, or password_file")
		},
	})
}

func (t *RedisTLS) read(v value) {
	given := v.object(map[string]field{
		"enabled": boolean(&t.Enabled), "ca_file": path(&t.CAFile), "server_name": text(&t.ServerName),
		"cert_file": path(&t.CertFile), "key_file": path(&t.KeyFile),
	})
	if given["cert_file"] != given["key_file"] {
		v.fault("must have both cert_file and key_file, or neither")
	}
}
