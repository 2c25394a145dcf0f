package architecture

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// arrows lists, for each package with imports of ours, which ones they may be.
// A package imports only what stands below it here. Who adds an arrow adds it
// in this list, and says in the commit why.
var arrows = map[string][]string{
	"cmd/capper": {
		"client", "cmd/capper/blast", "cmd/capper/campaigns", "cmd/capper/doctor", "cmd/capper/history",
		"cmd/capper/imports", "cmd/capper/paced", "cmd/capper/probe", "cmd/capper/remote", "internal/app",
		"internal/capping", "internal/config", "internal/terminal", "internal/pacing", "internal/segments",
		"internal/segments/ingest",
		"internal/segments/ingest/delimited", "internal/server/access", "internal/systemd", "internal/yamltree",
		"cmd/capper/storage",
	},
	"cmd/capper/campaigns": {"client", "cmd/capper/history", "cmd/capper/remote", "internal/terminal"},
	"cmd/capper/doctor": {"cmd/capper/remote", "internal/config", "internal/doctor", "internal/doctor/checks",
		"internal/sizing", "internal/terminal"},
	"cmd/capper/blast": {"client", "internal/terminal"},
	"cmd/capper/history": {
		"client", "cmd/capper/remote", "internal/audit", "internal/audit/archive", "internal/audit/compact",
		"internal/audit/export",
		"internal/audit/verify", "internal/capping", "internal/config", "internal/objects", "internal/segments",
		"internal/share", "internal/terminal", "internal/whatif", "internal/whatif/report", "internal/yamltree",
	},
	"cmd/capper/paced":  {"client", "client/api", "cmd/capper/lines", "cmd/capper/remote", "internal/terminal"},
	"cmd/capper/remote": {"client", "internal/terminal"},
	"cmd/capper/storage": {"client", "cmd/capper/remote", "internal/app", "internal/capping/pebblestore",
		"internal/capping/pebblestore/backup", "internal/capping/redisstore", "internal/config", "internal/migration",
		"internal/terminal"},
	"cmd/capper/imports": {
		"client", "cmd/capper/remote", "internal/capping", "internal/objects", "internal/segments/ingest/content",
		"internal/segments/ingest/sends", "internal/terminal", "internal/zones",
	},
	"cmd/capper/probe": {"internal/config", "internal/terminal"},
	"cmd/segmentbuild": {
		"internal/audience", "internal/bitmap", "internal/terminal", "internal/objects", "internal/segments",
		"internal/segments/build", "internal/segments/ingest",
		"internal/segments/ingest/delimited", "internal/segments/ingest/rows", "internal/segments/publish",
		"internal/segments/publish/guard",
		"internal/segments/synthetic", "internal/version",
	},

	"scripts/demo": {"client"},

	"lookup": {"internal/audience", "internal/bitmap", "internal/objects", "internal/segments", "internal/share"},

	"internal/app": {"client/api", "internal/audience", "internal/audit/archive", "internal/audit/journal",
		"internal/campaign", "internal/capping", "internal/capping/measure", "internal/capping/pebblestore",
		"internal/capping/redisstore", "internal/config", "internal/config/policytext", "internal/console",
		"internal/console/recent", "internal/objects", "internal/pacing", "internal/segments",
		"internal/segments/history", "internal/server", "internal/server/answer", "internal/server/listen",
		"internal/server/loglevel", "internal/server/messages", "internal/server/past", "internal/systemd",
		"internal/terminal", "internal/trace", "internal/trace/otlp", "internal/version", "internal/zones"},

	"internal/audience": {"internal/bitmap", "internal/parallel", "internal/segments", "internal/share"},

	"internal/audit": {"internal/bitmap", "internal/capping"},
	"internal/audit/archive": {"internal/audit", "internal/bitmap", "internal/capping", "internal/objects",
		"internal/parallel"},
	"internal/audit/journal": {"client/api", "internal/audit", "internal/capping", "internal/objects"},
	"internal/audit/compact": {"internal/audit", "internal/audit/archive", "internal/capping", "internal/objects"},
	"internal/audit/export":  {"internal/audit"},
	"internal/audit/verify": {
		"internal/audit", "internal/audit/archive", "internal/bitmap", "internal/capping", "internal/objects",
		"internal/parallel", "internal/share",
	},
	"internal/audit/audittest":       {"internal/audit", "internal/capping", "internal/objects"},
	"internal/campaign":              {"internal/capping"},
	"internal/campaign/campaigntest": {"internal/campaign", "internal/capping", "internal/testkit"},

	"internal/bitmap": {"internal/parallel"},

	"internal/capping":            {"internal/parallel", "internal/quiet", "internal/share", "internal/trace"},
	"internal/capping/cappertest": {"internal/capping", "internal/quiet", "internal/share", "internal/testkit"},
	"internal/capping/measure":    {"internal/capping", "internal/trace"},
	"internal/capping/pebblestore": {
		"internal/campaign", "internal/capping", "internal/capping/pebblestore/backup",
		"internal/capping/pebblestore/campaigns", "internal/capping/pebblestore/database",
		"internal/capping/pebblestore/logcache",
		"internal/capping/pebblestore/pacerlogs", "internal/pacing", "internal/trace",
	},
	"internal/capping/pebblestore/campaigns": {"internal/campaign", "internal/capping",
		"internal/capping/pebblestore/database"},
	"internal/capping/pebblestore/backup": {"internal/capping/pebblestore/database",
		"internal/capping/pebblestore/directory", "internal/version"},
	"internal/capping/pebblestore/database": {"internal/capping", "internal/capping/pebblestore/directory",
		"internal/trace"},
	"internal/capping/pebblestore/logcache":  {"internal/capping"},
	"internal/capping/pebblestore/pacerlogs": {"internal/capping/pebblestore/database", "internal/pacing"},
	"internal/capping/redisstore": {
		"internal/campaign", "internal/capping", "internal/capping/redisstore/counts",
		"internal/capping/redisstore/dispatch", "internal/capping/redisstore/fault", "internal/capping/redisstore/pace",
		"internal/capping/redisstore/script", "internal/capping/redisstore/topology",
		"internal/capping/redisstore/topology/connect",
		"internal/pacing", "internal/zones",
	},
	"internal/capping/redisstore/baseline": {"internal/capping"},
	"internal/capping/redisstore/counts": {
		"internal/campaign", "internal/capping", "internal/capping/redisstore/dispatch",
		"internal/capping/redisstore/script",
	},
	"internal/capping/redisstore/dispatch": {
		"internal/capping", "internal/capping/redisstore/fault", "internal/capping/redisstore/script",
		"internal/capping/redisstore/topology",
		"internal/capping/redisstore/topology/connect", "internal/trace",
	},
	"internal/capping/redisstore/pace": {
		"internal/capping/redisstore/dispatch", "internal/capping/redisstore/fault",
		"internal/capping/redisstore/script", "internal/pacing",
	},
	"internal/capping/redisstore/script": {"internal/campaign", "internal/capping", "internal/pacing"},
	"internal/capping/redisstore/inspect": {
		"internal/capping/redisstore", "internal/capping/redisstore/script", "internal/capping/redisstore/topology",
		"internal/capping/redisstore/topology/connect",
		"internal/capping/redisstore/topology/examine",
	},
	"internal/capping/redisstore/topology": {
		"internal/capping/redisstore/fault", "internal/capping/redisstore/topology/connect",
		"internal/capping/redisstore/topology/examine",
	},
	"internal/capping/redisstore/topology/examine": {"internal/capping/redisstore/fault",
		"internal/capping/redisstore/topology/connect"},
	"internal/capping/storetest": {"internal/capping", "internal/testkit"},

	"internal/config": {
		"internal/audience", "internal/capping", "internal/capping/pebblestore", "internal/capping/redisstore",
		"internal/objects", "internal/pacing", "internal/quiet",
		"internal/segments", "internal/server/access", "internal/server/admission", "internal/server/listen",
		"internal/share", "internal/trace/otlp", "internal/yamltree", "internal/zones",
	},

	"internal/console": {
		"internal/console/campaigns", "internal/console/frame", "internal/console/generations",
		"internal/console/pages", "internal/console/recent", "internal/console/session", "internal/console/tryit",
		"internal/console/user",
		"internal/server/access",
	},
	"internal/console/campaigns": {"client", "client/api", "internal/console/chart", "internal/console/frame",
		"internal/console/outlook"},
	"internal/console/generations": {"client", "client/api", "internal/console/frame"},
	"internal/console/outlook":     {"client", "client/api", "internal/console/chart", "internal/console/frame"},
	"internal/console/tryit":       {"client", "client/api", "internal/console/frame", "internal/console/outlook"},
	"internal/console/user": {"client", "client/api", "internal/console/campaigns", "internal/console/frame",
		"internal/server/access", "internal/zones"},
	"internal/console/browsertest": {
		"client", "client/api", "internal/app", "internal/config", "internal/objects", "internal/segments/build",
		"internal/segments/ingest", "internal/segments/publish", "internal/testkit",
	},
	"internal/console/frame": {"client", "internal/console/session", "internal/server/access",
		"internal/server/failure"},
	"internal/console/pages": {"client", "client/api", "internal/console/chart", "internal/console/frame",
		"internal/console/recent"},
	"internal/console/recent":    {"client/api"},
	"internal/console/session":   {"internal/server/access"},
	"internal/config/policytext": {"internal/capping"},

	"internal/doctor/checks": {
		"client", "internal/app", "internal/capping/pebblestore/database", "internal/capping/pebblestore/directory",
		"internal/capping/redisstore", "internal/capping/redisstore/inspect",
		"internal/config", "internal/doctor", "internal/objects", "internal/pacing", "internal/segments",
		"internal/server/access", "internal/server/listen", "internal/sizing", "internal/trace/otlp",
		"internal/yamltree",
	},

	"internal/migration": {"internal/capping"},

	"internal/objects":             {"internal/trace"},
	"internal/objects/objectstest": {"internal/objects", "internal/objects/s3test"},

	"internal/pacing":            {"internal/capping"},
	"internal/pacing/pacingtest": {"internal/pacing", "internal/testkit"},

	"internal/segments": {"internal/bitmap", "internal/objects", "internal/parallel", "internal/zones"},
	"internal/segments/build": {
		"internal/bitmap", "internal/objects", "internal/segments", "internal/segments/ingest",
		"internal/segments/ingest/delimited",
		"internal/segments/ingest/rows", "internal/segments/publish", "internal/segments/publish/guard",
		"internal/yamltree",
	},
	"internal/segments/history": {"internal/objects", "internal/segments", "internal/segments/publish"},
	"internal/segments/ingest": {
		"internal/bitmap", "internal/objects", "internal/segments", "internal/segments/ingest/content",
		"internal/segments/ingest/delimited",
		"internal/segments/ingest/distinct", "internal/segments/ingest/ndjson", "internal/segments/ingest/parquet",
		"internal/segments/ingest/rows",
	},
	"internal/segments/ingest/content":   {"internal/objects", "internal/segments/ingest/rows"},
	"internal/segments/ingest/delimited": {"internal/segments/ingest/rows"},
	"internal/segments/ingest/ndjson":    {"internal/segments/ingest/rows"},
	"internal/segments/ingest/parquet":   {"internal/segments/ingest/rows"},
	"internal/segments/ingest/sends":     {"internal/capping", "internal/segments/ingest/content"},
	"internal/segments/ingest/rowstest":  {"internal/segments/ingest/rows"},
	"internal/segments/publish": {"internal/bitmap", "internal/objects", "internal/parallel",
		"internal/segments"},
	"internal/segments/publish/guard": {"internal/bitmap", "internal/objects", "internal/segments",
		"internal/segments/publish"},
	"internal/segments/segmentstest": {"internal/bitmap", "internal/objects", "internal/segments"},
	"internal/segments/synthetic":    {"internal/bitmap", "internal/segments"},

	"internal/terminal": {"internal/version"},
	"internal/version":  {"internal/zones"},

	"internal/whatif":        {"internal/audit", "internal/bitmap", "internal/capping"},
	"internal/whatif/report": {"internal/console/chart", "internal/whatif"},

	"internal/server": {"client/api", "internal/audience", "internal/audit", "internal/audit/journal",
		"internal/campaign", "internal/capping", "internal/objects", "internal/pacing", "internal/segments",
		"internal/segments/history", "internal/segments/publish", "internal/server/access", "internal/server/admission",
		"internal/server/answer", "internal/server/body", "internal/server/decode", "internal/server/failure",
		"internal/server/listen", "internal/server/lookup", "internal/server/messages", "internal/server/metrics",
		"internal/server/past", "internal/server/record", "internal/server/tracing", "internal/trace",
		"internal/zones"},
	"internal/server/access":    {"client/api", "internal/capping", "internal/server/failure"},
	"internal/server/admission": {"client/api", "internal/pacing", "internal/server/failure"},
	"internal/server/answer": {"client/api", "internal/bitmap", "internal/campaign", "internal/capping",
		"internal/pacing", "internal/segments/history", "internal/segments/publish", "internal/server/decode",
		"internal/server/lookup"},
	"internal/server/body": {"client/api", "internal/server/admission", "internal/server/failure"},
	"internal/server/decode": {"client/api", "internal/bitmap", "internal/capping", "internal/server/failure",
		"internal/share"},
	"internal/server/failure": {"client/api"},
	"internal/server/listen":  {"client/api", "internal/server/admission", "internal/server/failure"},
	"internal/server/lookup": {
		"client/api", "internal/audience", "internal/bitmap", "internal/parallel", "internal/segments",
		"internal/server/failure", "internal/share",
	},
	"internal/server/record": {"internal/audit", "internal/capping", "internal/pacing", "internal/server/access",
		"internal/server/answer", "internal/server/decode"},
	"internal/server/past": {"client/api", "internal/audit", "internal/audit/archive", "internal/bitmap",
		"internal/capping", "internal/server/failure"},
	"internal/server/metrics": {
		"client/api", "internal/capping", "internal/pacing", "internal/server/access", "internal/server/admission",
		"internal/server/answer",
	},
	"internal/server/tracing": {"internal/capping", "internal/server/answer", "internal/server/failure",
		"internal/trace"},
	"internal/trace/otlp": {"internal/trace"},
	"internal/server/messages": {"client/api", "internal/audit/archive", "internal/campaign", "internal/capping",
		"internal/server/answer", "internal/server/decode", "internal/server/failure"},
}

// libraries are known to one room alone: to the packages whose path begins with
// one of these.
var libraries = map[string][]string{
	"github.com/labstack/echo":      {"internal/server"},
	"github.com/redis/go-redis":     {"internal/capping/redisstore"},
	"github.com/cockroachdb/pebble": {"internal/capping/pebblestore"},
	"github.com/aws/":               {"internal/objects"},
	"github.com/goccy/go-yaml":      {"internal/yamltree", "internal/deploytest"},
	"github.com/alecthomas/kong":    {"cmd", "internal/terminal"},
	"github.com/go-analyze/charts":  {"internal/console/chart"},
	"github.com/parquet-go/parquet-go": {"internal/audit/export", "internal/segments/ingest",
		"internal/segments/synthetic"},
	"go.opentelemetry.io/": {"internal/trace/otlp"},
	"github.com/chromedp/": {"internal/console/browsertest"},
}

func TestArrowsAreThoseThatAreMeant(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	var unknown []string
	for _, r := range tree(t) {
		for _, imported := range r.ours() {
			arrow := r.path + " → " + imported
			used[arrow] = true
			if !slices.Contains(arrows[r.path], imported) {
				unknown = append(unknown, arrow)
			}
		}
	}
	require.Empty(t, unknown, "is that where they should point? Then arrows lists them")
	var unused []string
	for from, targets := range arrows {
		for _, to := range targets {
			if !used[from+" → "+to] {
				unused = append(unused, from+" → "+to)
			}
		}
	}
	require.Empty(t, unused, "arrows lists what nobody imports any more")
}

func TestProductionImportsNothingOfTests(t *testing.T) {
	t.Parallel()
	var found []string
	for _, r := range tree(t) {
		for _, imported := range r.ours() {
			if !forTests(r.path) && forTests(imported) {
				found = append(found, r.path+" → "+imported)
			}
		}
		if !forTests(r.path) && slices.ContainsFunc(r.Imports, isTestLibrary) {
			found = append(found, r.path+" → a library of tests")
		}
	}
	require.Empty(t, found)
}

func TestALibraryStaysInItsRoom(t *testing.T) {
	t.Parallel()
	var found []string
	for _, r := range tree(t) {
		for _, imported := range r.Imports {
			if rooms, known := roomsOf(imported); known && !forTests(r.path) && !below(r.path, rooms) {
				found = append(found, r.path+" → "+imported)
			}
		}
	}
	require.Empty(t, found, "libraries lists who may know which")
}

// roomsOf are the rooms that may know the library of an import.
func roomsOf(imported string) (rooms []string, known bool) {
	for library, rooms := range libraries {
		if strings.HasPrefix(imported, library) {
			return rooms, true
		}
	}
	return nil, false
}

// forTests reports whether only tests may import the package: its name says so.
func forTests(path string) bool {
	return strings.HasSuffix(path, "test") || slices.Contains([]string{
		"internal/architecture", "internal/capping/redisstore/baseline", "internal/testcluster", "internal/testkit",
	}, path)
}

func isTestLibrary(imported string) bool {
	return imported == "testing" || strings.HasPrefix(imported, "github.com/stretchr/testify") ||
		strings.HasPrefix(imported, "github.com/go-redis/redis_rate") // what pacing is compared with
}

// below reports whether the path is one of the rooms or within one.
func below(path string, rooms []string) bool {
	return slices.ContainsFunc(rooms, func(room string) bool {
		return path == room || strings.HasPrefix(path, room+
			"/")
	})
}
