package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"capper/internal/audit"
	"capper/internal/audit/archive"
	"capper/internal/objects"
	"capper/internal/segments"
)

// lookAtCache checks the cache directory of the segments.
func (s *Subject) lookAtCache(ctx context.Context, n *notes) {
	dir := s.Config.Segments.Refresher.CacheDir
	if dir == "" {
		n.Warn("", "no cache directory is configured",
			"set segments.cache_dir", "the service cannot start while the location of the "+
				"segments is down")
		return
	}
	if !tryDirectory(n, dir, "the service cannot start while the location of the segments is down") {
		return
	}
	need := int64(0)
	if at, err := objects.Open(ctx, s.Config.Segments.Source, s.Config.Segments.S3); err == nil {
		if m, err := segments.ReadLiveManifest(ctx, at); err == nil {
			for _, entry := range m.Entries() {
				need += 2 * entry.SizeBytes // the service writes the next generation before it removes the old one
			}
		}
	}
	judgeRoom(n, dir, need, "two generations")
}

// tryDirectory checks whether the service can write to a directory: tryDirectory writes a test file, and removes the
// file. The result is true if the writing succeeded. If the directory does not exist, tryDirectory tests the nearest
// existing parent directory.
func tryDirectory(n *notes, dir, why string) bool {
	at := nearest(dir)
	file, err := os.CreateTemp(at, ".capper-doctor-*")
	if about, statErr := os.Stat(dir); errors.Is(statErr, syscall.ENOTDIR) || statErr == nil && !about.IsDir() {
		err = errors.Join(err, fmt.Errorf("%s must be a directory, but the path or a parent is a file", dir))
	}
	if file != nil {
		defer func() { _ = os.Remove(file.Name()) }()
	}
	if err == nil {
		_, err = file.Write(make([]byte, 4096))
		if synced := file.Sync(); err == nil {
			err = synced
		}
		_ = file.Close()
	}
	if err != nil {
		n.Fail(dir, err.Error(), "chown "+at+" to the service's user, or free disk space; run the doctor as that user",
			why)
		return false
	}
	if at != dir {
		n.OK(dir, "does not exist yet; a file could be written to %s and was removed", at)
		return true
	}
	n.OK(dir, "%s was written and removed", filepath.Base(file.Name()))
	return true
}

// The function "nearest" returns the given directory or, if the directory does not exist, the nearest existing parent
// directory.
func nearest(dir string) string {
	for {
		if about, err := os.Stat(dir); err == nil && about.IsDir() || filepath.Dir(dir) == dir {
			return dir
		}
		dir = filepath.Dir(dir)
	}
}

// leastRoom is the minimum free disk space, in bytes, for each directory of files that the service writes.
const leastRoom = 256 << 20

// judgeRoom compares the free disk space for a directory with the required disk space.
func judgeRoom(n *notes, dir string, need int64, what string) {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(nearest(dir), &fs); err != nil {
		n.Skip("room", "%s: %v", dir, err)
		return
	}
	free := int64(uint64(fs.Bavail) * uint64(fs.Bsize))
	switch {
	case free < need:
		n.Fail("room", fmt.Sprintf("%s has %s free, but %s need %s", dir, bytesText(free), what, bytesText(need)),
			"use a larger disk, or another path", "writes fail when the disk is full")
	case free < need+leastRoom:
		n.Warn("room", fmt.Sprintf("%s has %s free, and %s need %s", dir, bytesText(free), what, bytesText(need)),
			"use a larger disk, or another path", "the disk is nearly full")
	case need == 0:
		n.OK("room", "%s has %s free", dir, bytesText(free))
	default:
		n.OK("room", "%s has %s free, and %s need %s", dir, bytesText(free), what, bytesText(need))
	}
}

// auditPlace checks the location of the audit, and the spool directory for audit files that wait for upload.
func auditPlace(s *Subject) check {
	return check{Name: "audit", Within: lookTime, Look: func(ctx context.Context, n *notes) {
		a := s.Config.Audit
		if a.To == "" {
			n.Skip("", "decisions are not recorded")
			return
		}
		if !objects.IsURL(a.To) {
			if tryDirectory(n, a.To, "decisions are not recorded") {
				judgeRoom(n, a.To, 0, "future records")
			}
			s.judgeAuditIDs(ctx, n, objects.NewDirectory(a.To))
			return
		}
		at, err := objects.Open(ctx, a.To, s.Config.Segments.S3)
		if err != nil {
			n.Fail(a.To, err.Error(), "correct audit.to", "decisions are not recorded")
			return
		}
		s.tryAudit(ctx, n, at)
		s.judgeAuditIDs(ctx, n, at)
		if tryDirectory(n, a.Spool, "decisions are not recorded") {
			judgeRoom(n, a.Spool, a.MaxWaiting, "files waiting for upload (max_waiting)")
		}
	}}
}

// tryAudit writes, lists and removes a test object in the location of the audit.
func (s *Subject) tryAudit(ctx context.Context, n *notes, at objects.Location) {
	key := fmt.Sprintf("doctor-%d.json", s.now().UnixNano())
	if err := at.Overwrite(ctx, key, []byte("{}\n")); err != nil {
		n.Fail(at.Name(), err.Error(), reachOr(err, "grant s3:PutObject, s3:GetObject and s3:ListBucket, and for "+
			"compaction s3:DeleteObject"), "records collect in the spool directory, and are lost when it is full")
		return
	}
	if list, err := at.List(ctx, key); err != nil || len(list) != 1 {
		n.Warn(at.Name(), fmt.Sprintf("%s is not listed: %v", key, err), reachOr(err, "grant s3:ListBucket"),
			"capper audit finds no files")
	}
	if err := at.Delete(ctx, key); err != nil {
		n.Warn(at.Name(), err.Error(), reachOr(err, "grant s3:DeleteObject, and remove "+key),
			"capper audit compact cannot remove erased users")
		return
	}
	n.OK(at.Name(), "wrote, listed and removed %s", key)
}

// judgeAuditIDs compares the user ids in the audit with the user ids in the segments, by kind and key. If the user ids
// are dense (32-bit numbers), judgeAuditIDs adds no finding.
func (s *Subject) judgeAuditIDs(ctx context.Context, n *notes, at objects.Source) {
	const name, starts = "ids", "the service does not start"
	want, err := s.auditIDs(ctx)
	if err != nil {
		return // the checks of the segments report this error
	}
	have, err := archive.ReadIDs(ctx, at)
	if err == nil && have.Dense() && !want.Dense() {
		var policies []objects.Object
		if policies, err = at.List(ctx, audit.PoliciesPrefix); err == nil && len(policies) == 0 {
			have = want // a location without records accepts all kinds of ids
		}
	}
	if err == nil {
		err = have.Same(want)
	}
	var unreachable *objects.StorageError
	switch {
	case errors.As(err, &unreachable): // another check reports this error
	case err != nil:
		n.Fail(name, err.Error(), "correct audit.to or segments.source, or move the records away", starts)
	case !want.Dense():
		n.OK(name, "%s", want)
	}
}

// auditIDs returns the kind and key of the user ids in the audit records that the service would write.
func (s *Subject) auditIDs(ctx context.Context) (audit.IDs, error) {
	at, err := objects.Open(ctx, s.Config.Segments.Source, s.Config.Segments.S3)
	if err != nil {
		return audit.IDs{}, err
	}
	f, known, err := segments.ReadIDsFile(ctx, at)
	if err != nil || !known {
		return audit.IDs{}, err
	}
	return audit.IDsOf(f.Scheme()), nil
}

// reachOr returns advice for an error of S3, about missing permissions or about the connection to the S3 server.
func reachOr(err error, rights string) string {
	switch {
	case err == nil || objects.IsDenied(err):
		return rights
	case errors.Is(err, objects.ErrNotFound):
		return "create the bucket, or correct its name"
	}
	return "check that this machine can reach the endpoint (segments.s3, AWS_ENDPOINT_URL_S3) and has valid " +
		"credentials (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a shared profile or the role of an instance)"
}

// The variable "networked" lists file systems whose locks and syncs depend on another machine.
var networked = []string{"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "ceph", "glusterfs", "lustre", "fuse.sshfs",
	"fuse.s3fs", "fuse.gcsfuse", "fuse.rclone", "afs", "gfs2", "ocfs2"}

// fileSystem returns the type of the file system that contains a directory, according to the table of mounts. If the
// table of mounts does not contain the file system, fileSystem returns "".
func fileSystem(mounts, dir string) (kind string) {
	at, err := filepath.EvalSymlinks(nearest(dir))
	if err != nil {
		return ""
	}
	longest := -1
	for line := range strings.Lines(mounts) {
		before, behind, _ := strings.Cut(line, " - ")
		fields, kinds := strings.Fields(before), strings.Fields(behind)
		if len(fields) < 5 || len(kinds) < 1 {
			continue
		}
		point := strings.ReplaceAll(fields[4], `\040`, " ")
		if (at == point || strings.HasPrefix(at, strings.TrimRight(point, "/")+"/")) && len(point) >= longest {
			longest, kind = len(point), kinds[0]
		}
	}
	return kind
}

func isNetworked(kind string) bool { return slices.Contains(networked, kind) }

// syncTimes writes small blocks to a test file in the directory of path. For each block, syncTimes measures the time
// until the block is durable on the disk. The result holds the times in ascending order.
func syncTimes(ctx context.Context, path string, times int) (took []time.Duration, file string, err error) {
	f, err := os.CreateTemp(nearest(filepath.Dir(path)), ".capper-doctor-*")
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	defer func() { _ = f.Close() }()
	for range times {
		began := time.Now()
		if _, err := f.Write(make([]byte, 4096)); err != nil {
			return nil, f.Name(), err
		}
		if err := f.Sync(); err != nil {
			return nil, f.Name(), err
		}
		took = append(took, time.Since(began))
		if ctx.Err() != nil {
			break
		}
	}
	slices.Sort(took)
	return took, f.Name(), nil
}

// bytesText formats a number of bytes for people.
func bytesText(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB"}
	value, unit := float64(n), 0
	for value >= 1024 && unit < len(units)-1 {
		value /= 1024
		unit++
	}
	if unit == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.3g %s", value, units[unit])
}
