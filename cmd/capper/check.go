package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"capper/internal/app"
	"capper/internal/capping"
	"capper/internal/config"
	"capper/internal/pacing"
	"capper/internal/segments"
	"capper/internal/server/gate"
	"capper/internal/terminal"
	"capper/internal/yamltree"
)

// checkCommand is the command `capper check-config FILE`.
type checkCommand struct {
	File string `arg:"" help:"Configuration file to check."`
}

// The method Run prints a description of the configuration file, or one line for each error in the file.
func (c *checkCommand) Run(ctx context.Context, on *terminal.Streams) error {
	loaded, err := terminal.UntilStopped(ctx, 0, func() (*config.Config, error) { return config.Load(c.File) })
	var faults *yamltree.Faults
	if errors.As(err, &faults) {
		fmt.Fprintln(on.Out, faults)
		return terminal.WithStatus(terminal.BadInput, fmt.Errorf("%s: the configuration has %d %s",
			c.File, len(faults.List),
			plural(len(faults.List), "fault")))
	}
	if err != nil {
		return terminal.WithStatus(terminal.BadInput, err)
	}
	fmt.Fprintf(on.Out, "%s: valid, version %s\n", c.File, loaded.Version)
	fmt.Fprintf(on.Out, "  listens on %s, segments from %s, store %s\n", loaded.Server.Listen, loaded.Segments.Source,
		place(loaded.Store))
	if loaded.IDs != "" {
		fmt.Fprintf(on.Out, "  ids: %s\n", loaded.IDs)
	}
	if a := loaded.Audit; a.To != "" {
		fmt.Fprintf(on.Out, "  audit to %s, a file every %s\n", a.To, capping.Span(a.Roll))
	}
	fmt.Fprintf(on.Out, "  %s\n", describeTracing(loaded))
	for _, line := range describeServer(loaded.Server) {
		fmt.Fprintf(on.Out, "  %s\n", line)
	}
	fmt.Fprintf(on.Out, "  default: %s\n", describe(loaded.Policy, loaded.Policy.Default))
	for _, segment := range slices.Sorted(maps.Keys(loaded.Policy.Segments)) {
		fmt.Fprintf(on.Out, "  %s: %s\n", segment, describe(loaded.Policy, loaded.Policy.Segments[segment]))
	}
	for _, line := range describeWithheld(loaded) {
		fmt.Fprintf(on.Out, "  %s\n", line)
	}
	fmt.Fprintf(on.Out, "  %s\n", describeExempt(loaded))
	for i := range loaded.Pacers.Pacers {
		p := &loaded.Pacers.Pacers[i]
		fmt.Fprintf(on.Out, "  pacer %s%s\n", describePacer(p), describeClients(&loaded.Server.Access, p.Name))
	}
	for _, warning := range slices.Concat(loaded.Warnings, config.Silences(loaded.Policy, time.Now())) {
		on.Warn(warning)
	}
	for _, warning := range app.GroupsOfOneSlot(loaded) {
		on.Warn(warning)
	}
	for _, warning := range app.LookAtLists(ctx, loaded) {
		on.Warn(warning)
	}
	for _, missing := range app.MissingFiles(loaded) {
		on.Warn(missing.Error() + ": the service would not start here")
	}
	return nil
}

// describeTracing describes the tracing settings: the fraction of calls that the service traces, and the collector that
// receives the spans.
func describeTracing(cfg *config.Config) string {
	t := cfg.Tracing
	if t.Endpoint == "" {
		return "tracing: off"
	}
	of := fmt.Sprintf("%v of the other calls", t.Ratio)
	switch t.Ratio {
	case 0:
		of = "none of the others"
	case 1:
		of = "all others"
	}
	return fmt.Sprintf("tracing to %s: calls whose caller traces them, %s", t.Endpoint, of)
}

// The function "place" describes the store in the configuration: the kind of the store, and its address or directory.
func place(store config.Store) string {
	if store.Kind == config.Redis {
		return "redis at " + strings.Join(store.Redis.Options.Addrs, ", ")
	}
	return "embedded in " + store.Embedded.Path
}

func plural(n int, noun string) string {
	if n == 1 {
		return noun
	}
	return noun + "s"
}

func describe(policy *capping.Policy, limits []capping.Limit) string {
	if len(limits) == 0 {
		return "uncapped"
	}
	var parts []string
	for _, l := range limits {
		part := fmt.Sprintf("%s %d per %s", l.Name, l.Max, l.Span())
		if l.Calendar != "" {
			part += " " + inZone(l.UserZone, l.Location)
		}
		if on := channelNames(policy, l.Channels); on != "" {
			part += " on " + on
		}
		if l.Shadow {
			part += " (shadow: denies nobody)"
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ", ")
}

func inZone(user bool, location *time.Location) string {
	if user {
		return "in the user's time zone"
	}
	return "in " + cmp.Or(location, time.UTC).String()
}

// channelNames returns the names of the channels in a set of channels. For the set of all channels, channelNames
// returns "".
func channelNames(policy *capping.Policy, set capping.ChannelSet) string {
	var names []string
	for _, channel := range set.Channels() {
		names = append(names, policy.ChannelName(channel))
	}
	return strings.Join(names, " and ")
}

// describeWithheld describes the rules that deny messages to users independently of earlier sends, such as quiet hours.
// describeWithheld also describes the named audience expressions.
func describeWithheld(cfg *config.Config) (lines []string) {
	p := cfg.Policy
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	for i := range p.Suppress {
		s, exempt := &p.Suppress[i], "but not exempt ones"
		if s.EvenExempt {
			exempt = "even exempt ones"
		}
		add("suppress %s: %s, %s; %s", s.Set, sendsOn(p, s.Channels), exempt, describeGuard(s.MayLose, s.MaxAge))
	}
	if line := describeNoChannel(p); line != "" {
		add("%s", line)
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Sets)) {
		how := "calls may change it"
		if cfg.Sets.IsLive(name) {
			how = "calls may change it, also without a build"
		}
		add("set %s: %s, at most %d users with changes by calls", name, how, cfg.Sets.Max(name))
	}
	if h := p.Holdout; h != nil {
		add("holdout of %v %% of all users, salt %q: %s", h.Share.Percent(), h.Share.Salt(), sendsOn(p, h.Channels))
	}
	for i := range p.Quiet {
		q, users := &p.Quiet[i], ""
		if len(q.Sets) > 0 {
			users = ", to users in " + strings.Join(q.Sets, " or ") + "; " + describeGuard(q.MayLose, 0)
		}
		add("quiet from %s to %s %s: %s%s", q.Hours.From, q.Hours.To, inZone(q.UserZone, q.Location),
			sendsOn(p, q.Channels), users)
	}
	if p.Zone != nil {
		add("time zone of users in no set %s…: %s", segments.ZonePrefix, p.Zone)
	}
	for _, name := range cfg.Audiences.Names() {
		add("audience %s: %s", name, cfg.Audiences.Text(name))
	}
	return lines
}

// describeNoChannel describes the suppressed sets that do not apply to calls without a channel. If no suppression
// depends on the channel, describeNoChannel returns "".
func describeNoChannel(p *capping.Policy) string {
	if p.RequireChannel {
		return "calls without a channel: refused"
	}
	var passed []string
	for i := range p.Suppress {
		if s := &p.Suppress[i]; !s.Channels.All() {
			passed = append(passed, "suppress "+s.Set)
		}
	}
	if len(passed) == 0 {
		return ""
	}
	return "calls without a channel: allowed (require_channel), past " + strings.Join(passed, ", ")
}

// describeExempt describes the API keys that may make calls with "enforce": false, and the rules that such calls
// ignore.
func describeExempt(cfg *config.Config) string {
	const of = "exempt sends (enforce: false): "
	var from []string
	for _, key := range cfg.Server.Access.Keys {
		if slices.Contains(key.Scopes, gate.ScopeExempt) {
			from = append(from, key.ID)
		}
	}
	switch {
	case len(cfg.Server.Access.Keys) == 0:
		from = []string{"every caller"}
	case len(from) == 0:
		return of + "refused: no key has the scope exempt"
	default:
		from = []string{plural(len(from), "key") + " " + strings.Join(from, " and ")}
	}
	passed := []string{"limits"}
	if cfg.Policy.Holdout != nil {
		passed = append(passed, "the holdout")
	}
	if len(cfg.Policy.Quiet) > 0 {
		passed = append(passed, "quiet hours")
	}
	for i := range cfg.Policy.Suppress {
		if s := &cfg.Policy.Suppress[i]; !s.EvenExempt {
			passed = append(passed, "suppress "+s.Set)
		}
	}
	return of + "from " + from[0] + ", past " + strings.Join(passed, ", ")
}

// describeGuard describes the maximum age of a set, and the maximum percentage of users who may leave between two
// versions of the set. With a larger loss, the service rejects a new generation (published version of all sets).
func describeGuard(mayLose float64, maxAge time.Duration) string {
	text := fmt.Sprintf("at most %v %% of its users may leave at once", mayLose)
	if mayLose >= 100 {
		text = "all of its users may leave at once"
	}
	if maxAge > 0 {
		text += ", at most " + capping.Span(maxAge) + " old"
	}
	return text
}

func sendsOn(policy *capping.Policy, set capping.ChannelSet) string {
	if on := channelNames(policy, set); on != "" {
		return "sends on " + on
	}
	return "all sends"
}

// describeClients lists the clients that may use a pacer. If no client is restricted to certain pacers, describeClients
// returns "".
func describeClients(rules *gate.Rules, pacer string) string {
	if len(rules.Pacers) == 0 {
		return ""
	}
	if clients := rules.PacingClients(pacer); len(clients) > 0 {
		return "; for " + strings.Join(clients, ", ")
	}
	return "; for no client"
}

// describePacer describes the limits and the rate of a pacer, such as "carrier: one every 4ms (250/s), waits up to
// 30s".
func describePacer(p *pacing.Pacer) string {
	var limits, parts []string
	for _, l := range p.Limits {
		limits = append(limits, fmt.Sprintf("%d in any %s", l.Max, capping.Span(l.Window)))
	}
	if len(limits) > 0 {
		parts = append(parts, "at most "+strings.Join(limits, " and "))
	}
	if p.Rate.Permits > 0 {
		parts = append(parts, fmt.Sprintf("one every %s (%s)", capping.Span(p.Rate.Interval()), p.Rate))
	}
	if p.Per != pacing.PerPacer {
		parts = append(parts, "for each "+string(p.Per))
	}
	for _, s := range p.Shares {
		parts = append(parts, fmt.Sprintf("%d %% kept for %s", s.Percent, s.Name))
	}
	if p.Group != "" {
		parts = append(parts, "of the group "+p.Group)
	}
	wait := "waits up to " + capping.Span(p.LongestWait())
	if p.MaxWait == 0 {
		wait += " (default)"
	}
	parts = append(parts, wait)
	return p.Name + ": " + strings.Join(parts, ", ")
}

// describeServer describes the callers of the service, the rights of the callers, and the limits on calls.
func describeServer(s config.Server) (lines []string) {
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	if s.AdminListen != "" {
		add("admin listens on %s", s.AdminListen)
	}
	if s.TLS.CertFile == "" {
		add("TLS: none")
	} else {
		add("TLS: certificate %s, key %s", s.TLS.CertFile, s.TLS.KeyFile)
	}
	if len(s.Access.Keys) == 0 {
		add("keys: none: everybody who reaches the loopback address may call")
	}
	for _, key := range s.Access.Keys {
		namespace := ""
		if key.Namespace != "" {
			namespace = ", namespace " + key.Namespace
		}
		sets := ""
		if len(key.Sets) > 0 {
			sets = " of " + strings.Join(key.Sets, " and ")
		}
		add("key %s: client %s%s, %s%s", key.ID, key.Client, namespace, joined(key.Scopes), sets)
	}
	if len(s.HostNames) > 0 {
		add("host names: %s", strings.Join(s.HostNames, ", "))
	}
	add("rate: %s", describeRate(s.Access.Rate))
	for _, client := range slices.Sorted(maps.Keys(s.Access.Rates)) {
		add("rate of %s: %s", client, describeRate(s.Access.Rates[client]))
	}
	b := s.Bounds
	add("a call: %d ids or %d users of a bitmap, %s, %s for the store", b.JSONUsers, b.BitmapUsers,
		bytesText(b.BodyBytes), b.CallTimeout)
	add("all calls: %d users, %s of bodies, %s of answers, %d connections, at least %s a second, gzip 1 to %d",
		b.InFlightUsers, bytesText(b.InFlightBytes), bytesText(b.AnswerBytes), b.Connections, bytesText(b.MinRate),
		b.GzipRatio)
	add("permits: %d remembered requests a client and %d in all, and as many logs of messages and keys",
		b.PermitRecords.Client, b.PermitRecords.All)
	return lines
}

func joined(scopes []gate.Scope) string {
	texts := make([]string, len(scopes))
	for i, scope := range scopes {
		texts[i] = string(scope)
	}
	return strings.Join(texts, " and ")
}

func describeRate(r capping.Rate) string {
	if r.UsersPerSecond == 0 {
		return "unlimited"
	}
	return fmt.Sprintf("%d users per second, %d at once", r.UsersPerSecond, r.Largest())
}

// bytesText formats a number of bytes in the form that configuration files use, such as 16MiB.
func bytesText(n int64) string {
	for shift, unit := range map[int]string{30: "GiB", 20: "MiB", 10: "KiB"} {
		if n>>shift > 0 && n>>shift<<shift == n && n>>shift < 1024 {
			return fmt.Sprintf("%d%s", n>>shift, unit)
		}
	}
	return fmt.Sprintf("%dB", n)
}
