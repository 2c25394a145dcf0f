package checks

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
	"capper/internal/capping/pebblestore/directory"
	"capper/internal/doctor"
	"capper/internal/sizing"
)

func embeddedChecks(s *Subject) []doctor.Check {
	return []doctor.Check{
		{Name: "embedded.directory", Look: s.lookAtDirectory},
		{Name: "embedded.room", Look: s.lookAtStoreRoom},
		{Name: "embedded.sync", Look: s.lookAtSync},
		{Name: "embedded.service", Look: s.lookAtService},
	}
}

// lookAtDirectory tells whether the store would open, and opens nothing.
func (s *Subject) lookAtDirectory(_ context.Context, n *doctor.Notes) {
	store := s.Config.Store.Embedded
	mounts := s.proc("mountinfo")
	switch kind := fileSystem(mounts, store.Path); {
	case s.noProcess():
		n.Skip("file system", "there is no process %d", s.Process)
	case kind == "":
		n.Skip("file system", "this system does not tell")
	case isNetworked(kind):
		n.Warn("file system", store.Path+" is on "+kind, "put store.embedded.path on a disk of this machine, or "+
			"take store.kind: redis",
			"over a network a sync is another machine's word, locks may not hold, and the store stops when the "+
				"network does")
	case kind == "tmpfs" || kind == "ramfs":
		n.Warn("file system", store.Path+" is on "+kind+", which is memory", "put store.embedded.path on a disk",
			"a restart of the machine forgets every send")
	default:
		n.OK("file system", "%s", kind)
	}
	data, known, err := database.Look(store.Path)
	switch {
	case errors.Is(err, fs.ErrPermission):
		n.Fail(store.Path, err.Error(), "run the doctor as the service's user, or give that user the directory",
			"the service does not start")
	case err != nil:
		n.Fail(store.Path, err.Error(), "put back what is missing from a backup, or see docs/operating.md, The "+
			"embedded store", "the service does not start")
	case !data && known:
		n.Fail(store.Path, "there is no store, and "+store.Path+".id tells of one",
			"mount the volume, or put the directory back; to begin anew, remove that file and start once with "+
				"create: true",
			"the service does not start: it would allow everybody again")
	case !data && store.MustExist:
		n.Fail(store.Path, "there is no store, and create is false", "mount the volume, or start once with "+
			"create: true", "the service does not start")
	case !data:
		n.OK(store.Path, "there is no store yet: the first start makes it")
	case !store.MustExist:
		n.Warn(store.Path, "there is a store, and create is true", "create: false",
			"where the volume is not mounted, or was emptied together with "+store.Path+
				".id, a start begins empty and everybody is allowed again")
	default:
		n.OK(store.Path, "there is a store, and its id beside it: %t", known)
	}
	tryDirectory(n, store.Path, "the store cannot write, and the service does not start")
}

// lookAtStoreRoom holds what is free to what so many users take.
func (s *Subject) lookAtStoreRoom(_ context.Context, n *doctor.Notes) {
	path := s.Config.Store.Embedded.Path
	if s.Users == 0 {
		judgeRoom(n, path, 0, "users to come")
		return
	}
	load := s.load()
	need := int64(sizing.EmbeddedDisk(load))
	judgeRoom(n, path, need, fmt.Sprintf("%d users with %g sends", s.Users, load.Sends))
}

// load is what there must be room for.
func (s *Subject) load() sizing.Load {
	load := sizing.Load{Users: s.Users, Sends: s.Sends, Density: s.Density}
	return load.WithDefaults()
}

// The bounds of what a sync takes: a call of the service waits for one.
const (
	slowSync     = 50 * time.Millisecond
	syncsMeasure = 25
)

func (s *Subject) lookAtSync(ctx context.Context, n *doctor.Notes) {
	path := s.Config.Store.Embedded.Path
	took, file, err := syncTimes(ctx, path, syncsMeasure)
	if err != nil {
		n.Fail(path, err.Error(), "see that the disk can be written to", "the store cannot write")
		return
	}
	middle, last := took[len(took)/2], took[len(took)-1]
	seen := fmt.Sprintf("4 KiB are durable within %s, in the worst of %d cases %s (%s was written and removed)",
		rounded(middle), len(took), rounded(last), file)
	if middle > slowSync {
		n.Warn(path, seen, "a disk with a faster sync (SSD with a protected cache)",
			"each call waits for a sync before anybody is allowed")
		return
	}
	n.OK(path, "%s", seen)
}

func rounded(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }

// lookAtService asks a service that has the store open how it is.
func (s *Subject) lookAtService(ctx context.Context, n *doctor.Notes) {
	path := s.Config.Store.Embedded.Path
	holder, err := directory.Holder(path)
	switch {
	case err != nil:
		n.Skip(path, "whether a service has it open cannot be seen: %v", err)
	case holder == 0 && s.isBarred():
		n.Skip(path, "nobody has it open, and no service can start: see embedded.directory")
	case holder == 0:
		n.OK(path, "nobody has it open: a service can start")
	default:
		s.askService(ctx, n, fmt.Sprintf("process %d has it open", holder))
	}
}

// isBarred reports whether a start refuses what is in the directory, or that nothing is.
func (s *Subject) isBarred() bool {
	data, known, err := database.Look(s.Config.Store.Embedded.Path)
	return err != nil || !data && (known || s.Config.Store.Embedded.MustExist)
}

// missingText says which sets a service waits for. One that starts or stops waits for none.
func missingText(status *api.Status) string {
	if len(status.Segments.Missing) == 0 {
		return ", so it starts or stops"
	}
	return "; missing: " + strings.Join(status.Segments.Missing, ", ")
}

func (s *Subject) askService(ctx context.Context, n *doctor.Notes, who string) {
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
		n.Skip("status", "%s; its status needs a key with the scope read in $CAPPER_API_KEY", who)
	case err != nil:
		n.Warn("status", who+", and "+scheme+s.Config.Server.Listen+" does not answer: "+err.Error(),
			"see its log; systemctl status capper", "what has the store open may not be a service that works")
	case status.Store.State != "ok":
		n.Fail("status", fmt.Sprintf("%s: its store is %s: %s", who, status.Store.State, status.Store.Error),
			"docs/operating.md, The embedded store", "users are unavailable")
	case !status.Ready:
		n.Fail("status", who+": it is not ready"+missingText(status), "capper status says why",
			"load balancers send it nothing")
	default:
		n.OK("status", "%s: ready, generation %s, configuration %s", who, status.Generation, status.ConfigVersion)
	}
	if err == nil && s.Config != nil && status.ConfigVersion != s.Config.Version {
		n.Warn("configuration", "the service has version "+status.ConfigVersion+", the file is "+s.Config.Version,
			"see config.error of capper status", "a reload was refused, or the service was started with another file")
	}
}
