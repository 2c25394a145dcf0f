package architecture

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// layers say which way imports point. A rule holds for production packages whose path
// begins with one of from; a path that ends in $ means that package alone.
var layers = []struct {
	name  string
	from  []string
	only  []string // nil: everything but never
	never []string
}{
	{
		name: "leaves know nothing of ours",
		from: []string{"internal/bitmap", "internal/dictionary", "internal/ids", "internal/terminal",
			"internal/version", "internal/yamltree", "internal/zones"},
		only: []string{"internal/parallel", "internal/terminal", "internal/version", "internal/zones"},
	},
	{
		name: "the domain knows segments, and no store, transport or file",
		from: domain,
		only: append([]string{"internal/bitmap", "internal/parallel",
			"internal/segments$", "internal/trace$", "internal/zones"}, domain...),
	},
	{
		name: "a store knows the domain and itself",
		from: []string{"internal/capping/redisstore", "internal/capping/pebblestore"},
		only: append([]string{"internal/capping/redisstore", "internal/capping/pebblestore", "internal/live",
			"internal/trace", "internal/version", "internal/zones"}, domain...),
	},
	{
		name:  "stores do not know each other: Redis",
		from:  []string{"internal/capping/redisstore"},
		never: []string{"internal/capping/pebblestore"},
	},
	{
		name:  "stores do not know each other: embedded",
		from:  []string{"internal/capping/pebblestore"},
		never: []string{"internal/capping/redisstore"},
	},
	{
		name:  "segments know no store, no pacer and no service",
		from:  []string{"internal/segments"},
		never: append(append([]string{"internal/pacing", "internal/messages"}, stores...), service...),
	},
	{
		name: "objects are files and buckets, without a meaning",
		from: []string{"internal/objects"},
		only: []string{"internal/objects", "internal/parallel", "internal/trace"},
	},
	{
		name:  "the audit knows what was decided, not who decided it",
		from:  []string{"internal/audit", "internal/pressure", "internal/whatif"},
		never: append(stores, service...),
	},
	{
		name:  "the server is given its store",
		from:  []string{"internal/server"},
		never: append([]string{"internal/app", "internal/config", "internal/console", "internal/doctor"}, stores...),
	},
	{
		name:  "wire and gate do not know the routes",
		from:  []string{"internal/server/"},
		never: []string{"internal/server$"},
	},
	{
		name: "the console knows the client, its frame and who may look",
		from: []string{"internal/console"},
		only: []string{"internal/chart", "internal/console", "internal/ids", "internal/server/", "internal/zones",
			"client"},
	},
	{
		name:  "a configuration starts nothing",
		from:  []string{"internal/config"},
		never: []string{"internal/app", "internal/server$", "internal/console", "internal/doctor"},
	},
	{
		name:  "commands reach a service through its client",
		from:  []string{"cmd", "internal/cli"},
		never: []string{"internal/server$", "internal/console"},
	},
	{
		name:  "nobody imports a program's parts, but the programs",
		from:  []string{"internal/server", "internal/config", "internal/segments", "internal/audit", "lookup"},
		never: []string{"cmd", "internal/app", "internal/cli"},
	},
}

// domain decides: pure arithmetic without input and output.
var domain = []string{"internal/capping$", "internal/pacing$", "internal/messages$", "internal/live$",
	"internal/audience", "internal/quiet", "internal/share"}

var stores = []string{"internal/capping/redisstore", "internal/capping/pebblestore"}

// service serves calls and reads configurations. The chart is drawn for reports too.
var service = []string{"internal/app", "internal/config", "internal/console$", "internal/console/frame",
	"internal/server", "internal/doctor", "internal/cli", "cmd"}

// libraries are known to one room alone: to the packages whose path begins with
// one of these.
var libraries = map[string][]string{
	"github.com/labstack/echo":      {"internal/server"},
	"github.com/redis/go-redis":     {"internal/capping/redisstore"},
	"github.com/cockroachdb/pebble": {"internal/capping/pebblestore"},
	"github.com/aws/":               {"internal/objects"},
	"github.com/goccy/go-yaml":      {"internal/yamltree", "internal/deploytest"},
	"github.com/alecthomas/kong":    {"cmd", "internal/terminal"},
	"github.com/go-analyze/charts":  {"internal/chart"},
	"github.com/parquet-go/parquet-go": {"internal/audit/archive", "internal/segments/ingest",
		"cmd/segmentbuild"},
	"go.opentelemetry.io/": {"internal/trace"},
	"github.com/chromedp/": {"internal/console/browsertest"},
}

func TestImportsPointDown(t *testing.T) {
	t.Parallel()
	for _, layer := range layers {
		t.Run(layer.name, func(t *testing.T) {
			t.Parallel()
			ruled, broken := 0, []string(nil)
			for _, r := range tree(t) {
				if forTests(r.path) || !within(r.path, layer.from) {
					continue
				}
				ruled++
				for _, imported := range r.ours() {
					allowed := layer.only == nil || within(imported, layer.only)
					if !allowed || within(imported, layer.never) {
						broken = append(broken, r.path+" imports "+imported)
					}
				}
			}
			require.Empty(t, broken)
			require.Positive(t, ruled, "the rule is about no package")
		})
	}
}

// within reports whether the path is one of the prefixes or below one. A prefix that ends
// in $ means that path alone, one that ends in / what is below it.
func within(path string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool {
		if exact, ok := strings.CutSuffix(prefix, "$"); ok {
			return path == exact
		}
		if strings.HasSuffix(prefix, "/") {
			return strings.HasPrefix(path, prefix)
		}
		return path == prefix || strings.HasPrefix(path, prefix+"/")
	})
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
			if rooms, known := roomsOf(imported); known && !forTests(r.path) && !within(r.path, rooms) {
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
