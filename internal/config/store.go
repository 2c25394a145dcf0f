package config

import (
	"net"
	"net/url"
	"strings"
	"time"

	"capper/internal/capping/redisstore"
	"capper/internal/yamltree"
)

func (r *reader) segments(v yamltree.Value) {
	s := &r.Segments
	given := v.Object(map[string]yamltree.Field{
		"source":    r.location(&s.Source),
		"refresh":   duration(&s.Refresher.Interval, 100*time.Millisecond, 24*time.Hour),
		"keep":      duration(&s.Refresher.Keep, time.Second, 24*time.Hour),
		"cache_dir": r.path(&s.Refresher.CacheDir),
		"s3": func(v yamltree.Value) {
			var pathStyle bool
			given := v.Object(map[string]yamltree.Field{
				"endpoint": endpoint(&s.S3.Endpoint), "region": yamltree.Text(&s.S3.Region),
				"path_style": yamltree.Bool(&pathStyle),
			})
			if given["path_style"] {
				s.S3.PathStyle = &pathStyle
			}
		},
	})
	if !given["source"] {
		v.FaultOf("source", "is required: name a directory or s3://bucket/prefix")
	}
}

// The method location returns a reader of a configured location: a directory, or an address of the form
// s3://bucket/prefix.
func (r *reader) location(to *string) yamltree.Field {
	return func(v yamltree.Value) {
		yamltree.Text(to)(v)
		scheme, rest, found := strings.Cut(*to, "://")
		bucket, _, _ := strings.Cut(rest, "/")
		if found && (scheme != "s3" || bucket == "") || !found && strings.HasPrefix(*to, "s3:") {
			v.Fault("must be a directory or s3://bucket/prefix, got %q", *to)
			return
		}
		if !found {
			r.places = append(r.places, place{v, to})
		}
	}
}

func endpoint(to *string) yamltree.Field {
	return func(v yamltree.Value) {
		yamltree.Text(to)(v)
		u, err := url.Parse(*to)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			v.Fault("must be a URL such as https://s3.example.com, got %q", *to)
		}
	}
}

func (r *reader) store(v yamltree.Value) {
	s := &r.Store
	given := v.Object(map[string]yamltree.Field{
		"kind": yamltree.OneOf(&s.Kind, Embedded, Redis),
		"embedded": func(v yamltree.Value) {
			v.Object(map[string]yamltree.Field{
				"path":       r.path(&s.Embedded.Path),
				"create":     opposite(&s.Embedded.MustExist),
				"cache_size": yamltree.Size(&s.Embedded.CacheBytes, 1<<20, 1<<40),
			})
		},
		"redis": r.redis,
	})
	if given["redis"] && !given["kind"] {
		v.FaultOf("kind", "is required if redis is configured: redis uses that section, embedded does not")
	}
	if s.Kind == Redis && len(s.Redis.Options.Addrs) == 0 {
		v.FaultOf("redis.addrs", "is required if kind is redis")
	}
}

func (r *reader) redis(v yamltree.Value) {
	s := &r.Store.Redis
	v.Object(map[string]yamltree.Field{
		"addrs":                func(v yamltree.Value) { s.Options.Addrs = readAddrs(v) },
		"sentinel_master":      yamltree.Text(&s.Options.SentinelMaster),
		"username":             yamltree.Text(&s.Options.Username),
		"password_file":        r.path(&s.PasswordFile),
		"tls":                  r.redisTLS,
		"replica_acks":         func(v yamltree.Value) { readAcks(v, &s.Options.ReplicaAcks) },
		"clock_skew":           duration(&s.Options.ClockSkew, 0, redisstore.MaxClockSkew),
		"allow_no_append_only": yamltree.Bool(&s.Options.WithoutAppendOnly),
		"create":               opposite(&s.Options.MustExist),
		"password": func(v yamltree.Value) {
			v.Fault("must not be in the file: use the environment variable CAPPER_REDIS_PASSWORD, or password_file")
		},
	})
}

func readAddrs(v yamltree.Value) (addrs []string) {
	v.List(func(v yamltree.Value) {
		var addr string
		address(&addr)(v)
		if host, port, err := net.SplitHostPort(addr); err == nil && (host == "" || port == "0" ||
			strings.ContainsAny(host, " \t")) {
			v.Fault("must be host:port with a host and a port from 1 to 65535, got %q", addr)
		}
		addrs = append(addrs, addr)
	})
	if len(addrs) == 0 && v.IsList() {
		v.Fault("must name at least one node")
	}
	return addrs
}

func readAcks(v yamltree.Value, to *redisstore.Acks) {
	text := ""
	if word, ok := v.Word(); ok && word == redisstore.Healthy.String() || v.IsInteger() {
		text = v.Token()
	}
	acks, err := redisstore.ParseAcks(text)
	if err != nil {
		v.Fault("must be healthy or a number from 0 to 5, got %s", v.Describe())
		return
	}
	*to = acks
}

func (r *reader) redisTLS(v yamltree.Value) {
	t := &r.Store.Redis.TLS
	given := v.Object(map[string]yamltree.Field{
		"enabled": yamltree.Bool(&t.Enabled), "ca_file": r.path(&t.CAFile), "server_name": yamltree.Text(&t.ServerName),
		"cert_file": r.path(&t.CertFile), "key_file": r.path(&t.KeyFile),
	})
	if given["cert_file"] != given["key_file"] {
		v.Fault("must have both cert_file and key_file, or neither")
	}
}
