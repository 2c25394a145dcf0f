package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"capper/client"
	"capper/client/api"
	"capper/internal/capping/pebblestore/database"
	"capper/internal/segments"
	"capper/internal/sizing"
)

func embeddedChecks(s *Subject) []check {
	return []check{
		{Name: "embedded.directory", Look: s.lookAtDirectory},
		{Name: "embedded.room", Look: s.lookAtStoreRoom},
		{Name: "embedded.sync", Look: s.lookAtSync},
		{Name: "embedded.service", Look: s.lookAtService},
	}
}

// lookAtDirectory checks whether the service could open the embedded store, without opening the store.
func (s *Subject) lookAtDirectory(_ context.Context, n *notes) {
	store := s.Config.Store.Embedded
	mounts := s.proc("mountinfo")
	switch kind := fileSystem(mounts, store.Path); {
	case s.noProcess():
		n.Skip("file system", "process %d does not exist", s.Process)
	case kind == "":
		n.Skip("file system", "the type of the file system is unknown on this operating system")
	case isNetworked(kind):
		n.Warn("file system", store.Path+" is on "+kind, "put store.embedded.path on a local disk, or use "+
			"store.kind: redis",
			"over a network, writes may not be durable, locks may not hold, and the store stops when the network does")
	case kind == "tmpfs" || kind == "ramfs":
		n.Warn("file system", store.Path+" is on "+kind+", which is memory", "put store.embedded.path on a disk",
			"a restart of the machine loses every send")
	default:
		n.OK("file system", "%s", kind)
	}
	data, known, err := database.Look(store.Path)
	switch {
	case errors.Is(err, fs.ErrPermission):
		n.Fail(store.Path, err.Error(), "run the doctor as the service's user, or give that user the directory",
			"the service does not start")
	case err != nil:
		n.Fail(store.Path, err.Error(), "restore the missing files from a backup, or see docs/operating.md, The "+
			"embedded store", "the service does not start")
	case !data && known:
		n.Fail(store.Path, "the store does not exist, but "+store.Path+".id belongs to one",
			"mount the volume, or restore the directory; to start with an empty store, remove that file and set "+
				"'create' to true for one start",
			"the service does not start, because an empty store would allow every user again")
	case !data && store.MustExist:
		n.Fail(store.Path, "the store does not exist, and the setting 'create' is false",
			"mount the volume, or set 'create' to true for one start", "the service does not start")
	case !data:
		n.OK(store.Path, "the store does not exist yet: the first start creates it")
	case !store.MustExist:
		n.Warn(store.Path, "the store exists, and create is true", "create: false",
			"if the volume is not mounted, or was emptied together with "+store.Path+
				".id, a start creates an empty store and every user is allowed again")
	default:
		n.OK(store.Path, "the store exists; its id file exists: %t", known)
	}
	tryDirectory(n, store.Path, "the store cannot write, and the service does not start")
}

// lookAtStoreRoom compares the free disk space with the store's need for the planned users.
func (s *Subject) lookAtStoreRoom(_ context.Context, n *notes) {
	path := s.Config.Store.Embedded.Path
	if s.Users == 0 {
		judgeRoom(n, path, 0, "future users")
		return
	}
	load := s.load()
	need := int64(sizing.EmbeddedDisk(load))
	judgeRoom(n, path, need, fmt.Sprintf("%d users with %g sends", s.Users, load.Sends))
}

// The method load returns the planned load (users and sends). From the planned load, the doctor computes the required
// memory and disk space.
func (s *Subject) load() sizing.Load {
	load := sizing.Load{Users: s.Users, Sends: s.Sends, Density: s.Density, IDs: s.kind()}
	return load.WithDefaults()
}

// The method kind returns the kind of the user ids in the segments. If the ids are dense (32-bit numbers), or if their
// kind is unknown, the method kind returns "".
func (s *Subject) kind() string {
	ctx, cancel := context.WithTimeout(context.Background(), lookTime)
	defer cancel()
	at, err := openSource(ctx, s)
	if err != nil {
		return ""
	}
	file, ok, err := segments.ReadIDsFile(ctx, at)
	if err != nil || !ok {
		return ""
	}
	return file.Kind.String()
}

// The doctor measures the time of several disk syncs (syncsMeasure). If the median time is above slowSync, the doctor
// reports slow syncs, because each call to the service waits for a sync.
const (
	slowSync     = 50 * time.Millisecond
	syncsMeasure = 25
)

func (s *Subject) lookAtSync(ctx context.Context, n *notes) {
	path := s.Config.Store.Embedded.Path
	took, file, err := syncTimes(ctx, path, syncsMeasure)
	if err != nil {
		n.Fail(path, err.Error(), "make the disk writable", "the store cannot write")
		return
	}
	middle, last := took[len(took)/2], took[len(took)-1]
	seen := fmt.Sprintf("a write of 4 KiB is durable within %s, in the worst of %d cases %s (%s was written and "+
		"removed)",
		rounded(middle), len(took), rounded(last), file)
	if middle > slowSync {
		n.Warn(path, seen, "use a disk with a faster sync (SSD with a protected cache)",
			"each call waits for a sync before a user is allowed")
		return
	}
	n.OK(path, "%s", seen)
}

func rounded(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }

// lookAtService requests the status of the service that has opened the embedded store.
func (s *Subject) lookAtService(ctx context.Context, n *notes) {
	path := s.Config.Store.Embedded.Path
	holder, err := database.Holder(path)
	switch {
	case err != nil:
		n.Skip(path, "cannot determine whether a service has the store open: %v", err)
	case holder == 0 && s.isRejected():
		n.Skip(path, "no process has the store open, and no service can start: see embedded.directory")
	case holder == 0:
		n.OK(path, "no process has the store open: a service can start")
	default:
		s.askService(ctx, n, fmt.Sprintf("process %d has the store open", holder))
	}
}

// isRejected reports whether the service, at its start, would reject the directory of the embedded store, because of
// its contents or because the directory is empty.
func (s *Subject) isRejected() bool {
	data, known, err := database.Look(s.Config.Store.Embedded.Path)
	return err != nil || !data && (known || s.Config.Store.Embedded.MustExist)
}

// missingText returns a text with the reason why a service is not ready: sets are missing, or the service is starting
// or stopping.
func missingText(status *api.Status) string {
	if len(status.Segments.Missing) == 0 {
		return ", so it is starting or stopping"
	}
	return "; missing: " + strings.Join(status.Segments.Missing, ", ")
}

func (s *Subject) askService(ctx context.Context, n *notes, who string) {
	scheme := "http://"
	if s.Config.Server.TLS.CertFile != "" {
		scheme = "https://"
	}
	service, err := client.New(client.Config{URL: scheme + s.Config.Server.Listen, Key: s.Key, Attempts: 1})
	var status *api.Status
	if err == nil {
		status, err = service.Status(ctx)
	}
	switch {
	case client.HasCode(err, client.CodeUnauthorized), client.HasCode(err, client.CodeForbidden):
		n.Skip("status", "%s; reading its status needs a key with the scope read in $CAPPER_API_KEY", who)
	case err != nil:
		n.Warn("status", who+", and "+scheme+s.Config.Server.Listen+" does not answer: "+err.Error(),
			"check its log; systemctl status "+
				"capper", "the process that has the store open may not be a working service")
	case status.Store.State != "ok":
		n.Fail("status", fmt.Sprintf("%s: its store is %s: %s", who, status.Store.State, status.Store.Error),
			"see docs/operating.md, The embedded store", "users are unavailable")
	case !status.Ready:
		n.Fail("status", who+": the service is not ready"+missingText(status), "capper status shows the reason",
			"load balancers send it no calls")
	default:
		n.OK("status", "%s: ready, generation %s, configuration %s", who, status.Generation, status.ConfigVersion)
	}
	if err == nil && s.Config != nil && status.ConfigVersion != s.Config.Version {
		n.Warn("configuration", "the service has version "+status.ConfigVersion+", but the file has "+
			"version "+s.Config.Version,
			"see config.error of capper status", "a reload was rejected, or the service was started with another file")
	}
}
