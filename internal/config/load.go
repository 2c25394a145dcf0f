package config

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"capper/internal/capping"
	"capper/internal/yamltree"
)

func defaults(version string) *Config {
	return &Config{
		Version: version,
		Server: Server{
			Listen: "127.0.0.1:8080", CallTimeout: 5 * time.Second, StopDelay: time.Second, StopTimeout: 20 * time.Second,
			MaxJSONUsers: 100_000, MaxBitmap: 1_000_000, MaxBody: 16 << 20, MaxInFlight: 4_000_000,
			Bounds:       Bounds{BodyBytes: defaultBodyBytes, AnswerBytes: 512 << 20, GzipRatio: 100, MinRate: 64 << 10, Connections: 16_384},
			ClientLimits: map[string]RateLimit{},
		},
		Segments: Segments{Refresh: 30 * time.Second, CacheDir: "var/cache"},
		Store: Store{
			Kind:     Embedded,
			Embedded: EmbeddedStore{Path: "var/log.db", Create: true, CacheSize: 512 << 20},
			Redis:    RedisStore{ReplicaAcks: HealthyReplicas, Create: true, ClockSkew: 250 * time.Millisecond},
		},
		Log: Log{Level: "info", Format: "text"},
		Policy: &capping.Policy{
			Version: version, Channels: map[string]capping.Channel{}, Segments: map[string][]capping.Limit{},
		},
	}
}

// Load reads and checks a file. The error is a *Faults when the file could be
// read but has faults.
func Load(file string) (*Config, error) {
	data, err := yamltree.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	return Parse(file, data)
}

// Parse checks the bytes of a file; file is its name in errors, and where
// relative paths begin.
func Parse(file string, data []byte) (*Config, error) {
	root, fault := tree(data)
	if fault != nil {
		return nil, &Faults{file, []Fault{*fault}}
	}
	sum := sha256.Sum256(data)
	config := defaults(hex.EncodeToString(sum[:])[:12])
	r := &reader{anchors: map[string]ast.Node{}}
	config.read(value{"", root, r}.resolve())
	config.locate(file, r)
	if len(r.faults) > 0 {
		return nil, (&Faults{file, r.faults}).sorted()
	}
	config.leaves = map[string]string{}
	leavesOf(value{"", root, r}.resolve(), config.leaves)
	return config, nil
}

// tree is the root node of the one document that the file must hold. Repeated
// keys are found by the walk, with the other faults.
func tree(data []byte) (ast.Node, *Fault) {
	root, err := yamltree.Parse(data, parser.AllowDuplicateMapKey())
	if err == nil {
		return root, nil
	}
	var fault *yamltree.Fault
	if !errors.As(err, &fault) {
		return nil, &Fault{Rule: err.Error()}
	}
	if fault.Empty {
		fault.Rule += "; at least segments.source and limits are needed"
	}
	return nil, &Fault{Line: fault.Line, Column: fault.Column, Rule: fault.Rule}
}

// name is the rule of segments, limits, channels and clients; that of segments
// is also the rule of those who publish them.
var name = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)

const nameRule = "must be 1 to 64 letters, digits, '_', '.' and '-', the first a letter or digit, got %q"

func (c *Config) read(root value) {
	given := root.object(map[string]field{
		"server":   c.Server.read,
		"segments": c.Segments.read,
		"store":    c.Store.read,
		"log": func(v value) {
			v.object(map[string]field{
				"level":  oneOf(&c.Log.Level, "debug", "info", "warn", "error"),
				"format": oneOf(&c.Log.Format, "text", "json"),
			})
		},
		"channels": func(v value) { readChannels(v, c.Policy.Channels) },
		"limits":   func(value) {}, // read below, when the channels are known
	})
	root.pairsQuietly("limits", func(v value) { c.readLimits(v) })
	if !given["segments"] {
		root.fault("segments: is required: segments.source says where the segments are published")
	}
	if !given["limits"] {
		root.fault("limits: is required: default and segments say how many sends a user may get")
	}
}

// pairsQuietly reads one key of a mapping that object has already checked.
func (v value) pairsQuietly(wanted string, read field) {
	var values []*ast.MappingValueNode
	switch n := v.node.(type) {
	case *ast.MappingNode:
		values = n.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{n}
	}
	for _, pair := range values {
		if pair.Key.GetToken().Value == wanted {
			if val := v.child(wanted, pair.Value); !val.isNull() {
				read(val)
			}
			return
		}
	}
}

func readChannels(v value, channels map[string]capping.Channel) {
	byNumber := map[int64]string{}
	v.pairs(func(key string, at, val value) {
		if !name.MatchString(key) {
			at.fault(nameRule, key)
		}
		number, ok := val.integer()
		if !ok {
			return
		}
		if number < 1 || number > 255 {
			val.fault("must be 1 to 255, got %d", number)
			return
		}
		if other, taken := byNumber[number]; taken {
			val.fault("must be a number of its own: %d is that of %q", number, other)
			return
		}
		byNumber[number] = key
		channels[key] = capping.Channel(number)
	})
}
