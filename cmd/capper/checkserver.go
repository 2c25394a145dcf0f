package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"capper/internal/capping"
	"capper/internal/config"
	"capper/internal/server/access"
)

// describeServer is who may call, how, and how much, on lines of their own.
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
		add("key %s: client %s%s, %s", key.ID, key.Client, namespace, joined(key.Scopes))
	}
	if len(s.HostNames) > 0 {
		add("host names: %s", strings.Join(s.HostNames, ", "))
	}
	add("rate: %s", describeRate(s.Access.Rate))
	for _, client := range slices.Sorted(maps.Keys(s.Access.Rates)) {
		add("rate of %s: %s", client, describeRate(s.Access.Rates[client]))
	}
	b := s.Bounds
	add("a call: %d ids or %d users of a bitmap, %s, %s for the store", b.JSONUsers, b.BitmapUsers, bytesText(b.BodyBytes), b.CallTimeout)
	add("all calls: %d users, %s of bodies, %s of answers, %d connections, at least %s a second, gzip 1 to %d",
		b.InFlightUsers, bytesText(b.InFlightBytes), bytesText(b.AnswerBytes), b.Connections, bytesText(b.MinRate), b.GzipRatio)
	return lines
}

func joined(scopes []access.Scope) string {
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

// bytesText is a size as configuration files have it.
func bytesText(n int64) string {
	for shift, unit := range map[int]string{30: "GiB", 20: "MiB", 10: "KiB"} {
		if n>>shift > 0 && n>>shift<<shift == n && n>>shift < 1024 {
			return fmt.Sprintf("%d%s", n>>shift, unit)
		}
	}
	return fmt.Sprintf("%dB", n)
}
