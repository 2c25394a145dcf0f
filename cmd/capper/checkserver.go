package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"capper/internal/config"
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
	if len(s.APIKeys) == 0 {
		add("keys: none: everybody who reaches the loopback address may call")
	}
	for _, key := range s.APIKeys {
		namespace := ""
		if key.Namespace != "" {
			namespace = ", namespace " + key.Namespace
		}
		add("key %s: client %s%s, %s", key.ID, key.Client, namespace, strings.Join(key.Scopes, " and "))
	}
	if len(s.HostNames) > 0 {
		add("host names: %s", strings.Join(s.HostNames, ", "))
	}
	add("rate: %s", describeRate(s.RateLimit))
	for _, client := range slices.Sorted(maps.Keys(s.ClientLimits)) {
		add("rate of %s: %s", client, describeRate(s.ClientLimits[client]))
	}
	add("a call: %d ids or %d users of a bitmap, %s, %s for the store", s.MaxJSONUsers, s.MaxBitmap, bytesText(s.MaxBody), s.CallTimeout)
	add("all calls: %d users, %s of bodies, %s of answers, %d connections, at least %s a second, gzip 1 to %d",
		s.MaxInFlight, bytesText(s.Bounds.BodyBytes), bytesText(s.Bounds.AnswerBytes), s.Bounds.Connections, bytesText(s.Bounds.MinRate), s.Bounds.GzipRatio)
	return lines
}

func describeRate(r config.RateLimit) string {
	if r.UsersPerSecond == 0 {
		return "unlimited"
	}
	return fmt.Sprintf("%d users per second, %d at once", r.UsersPerSecond, r.Burst)
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
