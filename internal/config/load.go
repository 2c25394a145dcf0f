package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"capper/internal/audience"
	"capper/internal/capping"
	"capper/internal/capping/pebblestore"
	"capper/internal/capping/redisstore"
	"capper/internal/ids"
	"capper/internal/pacing"
	"capper/internal/segments"
	"capper/internal/trace"
	"capper/internal/yamltree"
)

// The function "defaults" returns a configuration with the default values that package config defines. Other packages
// define all other default values. The function "defaults" sets the default value of another package only if the zero
// value of the field does not mean the default.
func defaults() *Config {
	c := &Config{
		Server: Server{
			Listen: "127.0.0.1:8080", StopDelay: time.Second, StopTimeout: 20 * time.Second,
		},
		Segments: Segments{Refresher: segments.RefresherConfig{Interval: segments.DefaultInterval,
			Keep: segments.DefaultKeep, CacheDir: "var/cache"}},
		Store:   Store{Kind: Embedded},
		Log:     Log{Level: "info", Format: "text"},
		Console: true,
		Policy: &capping.Policy{
			Channels: map[string]capping.Channel{}, Segments: map[string][]capping.Limit{},
		},
		Pacers:    &pacing.Policy{},
		Audiences: &audience.Named{},
	}
	c.Audit = Audit{Roll: 10 * time.Minute, Spool: "var/audit", MaxWaiting: 10 << 30}
	c.Server.Access.Rates = map[string]capping.Rate{}
	c.Store.Embedded.Path, c.Store.Embedded.CacheBytes = "var/log.db", pebblestore.DefaultCacheBytes
	c.Store.Redis.Options.ClockSkew = redisstore.DefaultClockSkew
	return c
}

// Load reads and checks a configuration file. If the configuration file is readable but contains errors, Load returns
// a *yamltree.Faults.
func Load(file string) (*Config, error) {
	data, err := yamltree.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	return Parse(file, data)
}

// Parse checks the content of a configuration file. The argument "file" of Parse is the file name for error messages.
// Relative paths in the configuration start at the directory of the configuration file.
func Parse(file string, data []byte) (*Config, error) {
	c, _, err := parse(file, data)
	return c, err
}

// The function parse works like Parse, and also returns the values of the file by path, so that reload errors can name
// the changed keys.
func parse(file string, data []byte) (*Config, map[string]string, error) {
	root, fault := tree(data)
	if fault != nil {
		return nil, nil, &yamltree.Faults{File: file, List: []yamltree.Fault{*fault}}
	}
	r := &reader{Config: defaults()}
	r.read(root)
	r.locate(file, root)
	if faults := root.Faults(); len(faults) > 0 {
		return nil, nil, (&yamltree.Faults{File: file, List: faults}).Sorted()
	}
	r.setVersion(versionOf(root))
	r.PolicyText = r.policyText(root)
	return r.Config, root.Leaves(), nil
}

// The function tree returns the root of the only YAML document in the file.
func tree(data []byte) (yamltree.Value, *yamltree.Fault) {
	root, err := yamltree.Root(data)
	if err == nil {
		return root, nil
	}
	var fault *yamltree.Fault
	if !errors.As(err, &fault) {
		return root, &yamltree.Fault{Rule: err.Error()}
	}
	if fault.Empty {
		fault.Rule += "; segments.source and limits are required"
	}
	return root, fault
}

// A reader reads the values of a configuration file into a Config, and collects all errors in the file.
type reader struct {
	*Config
	places  []place          // paths of files and directories
	clients []yamltree.Value // keys of "rate_limits.clients", checked after "api_keys"
	bound   []yamltree.Value // keys of the section "clients", checked after "api_keys"
	// pacersOfClients holds the pacer names of all clients, which the reader checks after reading the pacers.
	pacersOfClients []yamltree.Value
	// sharesOfClients holds the share names of all clients, which the reader checks after reading the pacers.
	sharesOfClients []yamltree.Value
	names           []yamltree.Value // names of limits, checked after all other keys
	// userZones is true if at least one rule uses the time zones of users.
	userZones bool
}

func (r *reader) read(root yamltree.Value) {
	r.Server.Bounds = r.Server.Bounds.WithDefaults()
	var rest []func()
	later := func(read yamltree.Field) yamltree.Field { // delays "read" until the channels are known
		return func(v yamltree.Value) { rest = append(rest, func() { read(v) }) }
	}
	var dropped, narrowed yamltree.Value
	fields := r.deciding(later)
	maps.Copy(fields, map[string]yamltree.Field{
		"no_longer_suppressed": func(v yamltree.Value) { dropped = v },
		"less_suppressed":      func(v yamltree.Value) { narrowed = v },
		"server":               r.server,
		"segments":             r.segments,
		"ids":                  r.ids,
		"store":                r.store,
		"log":                  r.log,
		"console":              r.console,
		"audit":                r.audit,
		"tracing":              r.tracing,
		"sets":                 r.sets,
		"clients":              r.clientRules,
		"audiences":            later(r.audiences),
		"pacers":               later(r.pacers),
	})
	given := root.Top(fields, func(key string) string { return homeOf(key, slices.Sorted(maps.Keys(fields))) })
	for _, read := range rest {
		read()
	}
	if given["no_longer_suppressed"] {
		r.droppedSets(dropped)
	}
	if given["less_suppressed"] {
		r.narrowedSets(narrowed)
	}
	r.checkNames(given)
	r.checkZones(given)
	r.checkSets()
	r.checkClients()
	if !given["segments"] {
		root.FaultOf("segments", "is required: set segments.source to the location of the published segments")
	}
	if !given["limits"] {
		root.FaultOf("limits", "is required: default and segments set how many sends a user may get")
	}
}

// The method "deciding" returns the functions that read the configuration keys that affect decisions about users. The
// argument "later" delays a function that needs the configured channels, until the channels are known.
func (r *reader) deciding(later func(yamltree.Field) yamltree.Field) map[string]yamltree.Field {
	return map[string]yamltree.Field{
		"channels":        func(v yamltree.Value) { readChannels(v, r.Policy.Channels) },
		"require_channel": later(r.requireChannel),
		"limits":          later(r.limits),
		"suppress":        later(r.suppress),
		"holdout":         later(r.holdout),
		"quiet":           later(r.quietHours),
		"timezone":        later(r.timezone),
	}
}

// policyText returns the version of the file, and the keys that affect decisions about users, as YAML.
func (r *reader) policyText(root yamltree.Value) []byte {
	text := fmt.Appendf(nil, "version: %q\n", r.Policy.Version)
	deciding := r.deciding(func(read yamltree.Field) yamltree.Field { return read })
	root.Pairs(func(key string, _, val yamltree.Value) {
		if deciding[key] != nil {
			text = fmt.Appendf(text, "%s: %s\n", key, val.YAML("  "))
		}
	})
	return text
}

func (r *reader) requireChannel(v yamltree.Value) {
	yamltree.Bool(&r.Policy.RequireChannel)(v)
	if r.Policy.RequireChannel && len(r.Policy.Channels) == 0 {
		v.Fault("must not be true if no channels are configured: every call would be rejected")
	}
}

// ParsePolicy reads the configuration keys that affect decisions about users. The argument "data" is either a
// Config.PolicyText with its version, or a whole configuration, for which ParsePolicy computes the version. ParsePolicy
// ignores all other keys. The error is a *yamltree.Faults.
func ParsePolicy(data []byte) (*capping.Policy, error) {
	root, fault := tree(data)
	if fault != nil {
		return nil, &yamltree.Faults{File: "policy", List: []yamltree.Fault{*fault}}
	}
	r := &reader{Config: defaults()}
	var rest []func()
	fields := r.deciding(func(read yamltree.Field) yamltree.Field {
		return func(v yamltree.Value) { rest = append(rest, func() { read(v) }) }
	})
	for _, other := range []string{"server", "segments", "ids", "store", "log", "console", "audit", "tracing",
		"audiences", "pacers", "clients", "sets", "no_longer_suppressed", "less_suppressed"} {
		fields[other] = func(yamltree.Value) {}
	}
	fields["version"] = yamltree.Text(&r.Policy.Version)
	given := root.Object(fields)
	for _, read := range rest {
		read()
	}
	r.checkNames(given)
	if !given["limits"] {
		root.FaultOf("limits", "is required: default and segments set how many sends a user may get")
	}
	if faults := root.Faults(); len(faults) > 0 {
		return nil, (&yamltree.Faults{File: "policy", List: faults}).Sorted()
	}
	if r.Policy.Version == "" {
		r.Policy.Version = versionOf(root)
	}
	return r.Policy, nil
}

// The method "ids" reads the key "ids": the kind of user ids, such as "uuid".
func (r *reader) ids(v yamltree.Value) {
	var names []string
	for _, kind := range ids.Kinds() {
		names = append(names, kind.String())
	}
	yamltree.OneOf(&r.IDs, names...)(v)
}

func (r *reader) log(v yamltree.Value) {
	v.Object(map[string]yamltree.Field{
		"level":  yamltree.OneOf(&r.Log.Level, "debug", "info", "warn", "error"),
		"format": yamltree.OneOf(&r.Log.Format, "text", "json"),
	})
}

// The method "tracing" reads the settings of tracing: the fraction of traced requests and the address of the collector.
// If the configuration file lacks the key "tracing", environment variables alone do not enable tracing.
func (r *reader) tracing(v yamltree.Value) {
	t := &r.Tracing
	t.Ratio, t.Timeout = trace.DefaultRatio, trace.DefaultTimeout
	given := v.Object(map[string]yamltree.Field{
		"endpoint": func(v yamltree.Value) {
			yamltree.Text(&t.Endpoint)(v)
			if _, err := trace.ParseEndpoint(t.Endpoint); t.Endpoint != "" && err != nil {
				v.Fault("%s", err)
			}
		},
		"sample_ratio": func(v yamltree.Value) { t.Ratio = readRatio(v) },
		"service_name": yamltree.Text(&t.ServiceName),
		"timeout":      duration(&t.Timeout, trace.MinTimeout, trace.MaxTimeout),
		"message_ids":  yamltree.Bool(&t.MessageIDs),
	})
	if !given["endpoint"] {
		v.FaultOf("endpoint", "is required: set the URL of the collector for OTLP over HTTP, such as "+
			"http://127.0.0.1:4318")
	}
}

// readRatio reads a configured number from 0 to 1.
func readRatio(v yamltree.Value) float64 {
	ratio, ok := number(v)
	if ok && !(ratio >= 0 && ratio <= 1) {
		v.Fault("must be a number from 0 to 1, got %s", v.Describe())
	}
	return ratio
}

func readChannels(v yamltree.Value, channels map[string]capping.Channel) {
	byNumber := map[int64]string{}
	v.Pairs(func(key string, at, val yamltree.Value) {
		if !capping.IsName(key) {
			at.Fault(capping.NameRule, key)
		}
		number, ok := val.Int()
		if !ok {
			return
		}
		if number < 1 || number > 255 {
			val.Fault("must be 1 to 255, got %d", number)
			return
		}
		if other, taken := byNumber[number]; taken {
			val.Fault("must be unique, but %d is also the number of %q", number, other)
			return
		}
		byNumber[number] = key
		channels[key] = capping.Channel(number)
	})
}
