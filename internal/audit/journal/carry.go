package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"capper/internal/audit"
	"capper/internal/capping"
)

// A carrier uploads the audit files of the carrier's journal, and the audit files of instances that have died.
type carrier struct {
	*Journal
	mu    sync.Mutex
	own   []string         // names of the complete files in the journal's spool directory
	sizes map[string]int64 // sizes of these files
	dead  []*room
	files int       // number of complete files in all spool directories
	seen  time.Time // time of the last search for spool directories
}

// These constants limit the time of an upload of an audit file, and the pause before the carrier retries an upload.
const (
	carryTimeout = 10 * time.Minute // time limit for one object; a stalled upload fails earlier
	firstPause   = time.Second      // pause after a failure, doubled after each further one
	longestPause = 30 * time.Second
)

// The method add adds a complete audit file of the journal's own spool directory to the upload queue.
func (c *carrier) add(name string, size int64) {
	c.mu.Lock()
	if c.sizes == nil {
		c.sizes = map[string]int64{}
	}
	c.sizes[name] = size
	c.own = append(c.own, name)
	c.files++
	c.mu.Unlock()
	c.deliverSoon()
}

// waitingFiles returns the number of complete audit files that wait for upload.
func (c *carrier) waitingFiles() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.files
}

// The method loop uploads waiting audit files, and retries failed uploads after a pause, until ctx ends.
func (c *carrier) loop(ctx context.Context) {
	defer c.done.Done()
	pause := time.Duration(0)
	for {
		err := c.deliver(ctx)
		if ctx.Err() != nil {
			return
		}
		c.state.delivered(err)
		wait := c.Roll // the interval between searches for spool directories of dead instances
		if pause = min(max(2*pause, firstPause), longestPause); err == nil {
			pause = 0
		} else {
			wait = pause
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-c.kick:
		}
		timer.Stop()
	}
}

// The method deliver uploads all waiting audit files. If one file has a fault, the method still uploads the other
// files.
func (c *carrier) deliver(ctx context.Context) error {
	if err := c.claim(ctx); err != nil {
		return err
	}
	c.findDead()
	var faults []error
	c.mu.Lock()
	dead := slices.Clone(c.dead)
	c.mu.Unlock()
	for _, r := range dead {
		err := c.deliverRoom(ctx, r, nil)
		if err == nil {
			c.forget(r)
		}
		faults = append(faults, err)
	}
	faults = append(faults, c.deliverRoom(ctx, &c.writing.room, c.ownFiles))
	return errors.Join(faults...)
}

func (c *carrier) ownFiles() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.own)
}

// findDead takes over the spool directories of service instances that have died, so that their audit files are
// uploaded.
func (c *carrier) findDead() {
	now := c.Clock()
	if now.Sub(c.seen) < c.Roll && !c.seen.IsZero() {
		return
	}
	c.seen = now
	entries, _ := os.ReadDir(c.home) // without the directory there are no spools
	for _, e := range entries {
		r := &room{dir: filepath.Join(c.home, e.Name()), instance: e.Name()}
		if !e.IsDir() || !audit.IsInstance(e.Name()) || e.Name() == c.instance || c.has(r) {
			continue
		}
		if err := r.enter(false); err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				_ = os.Remove(r.dir) // fails if the directory is not empty
			}
			continue
		}
		c.adopt(r)
	}
}

// The method adopt adds a room (spool directory) to the rooms whose audit files the carrier uploads. The caller must
// hold the lock of the room.
func (c *carrier) adopt(r *room) {
	names, _ := r.names(audit.FileExtension)
	for _, name := range names {
		if stat, err := os.Stat(r.path(name)); err == nil {
			c.waiting.Add(stat.Size())
		}
	}
	if len(names) > 0 {
		c.Logger.Info("audit records of another instance are being uploaded", "instance", r.instance, "files",
			len(names))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dead = append(c.dead, r)
	c.files += len(names)
}

func (c *carrier) has(r *room) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.dead, func(d *room) bool { return d.dir == r.dir })
}

func (c *carrier) forget(r *room) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dead = slices.DeleteFunc(c.dead, func(d *room) bool { return d == r })
	r.leave()
}

// The method leave unlocks the spool directories that the carrier has taken over from dead instances, so that another
// instance can take over the directories.
func (c *carrier) leave() {
	for _, r := range c.dead {
		r.leave()
	}
}

// deliverRoom uploads the audit files of a room (spool directory). The method deliverRoom uploads the policies before
// the records that refer to the policies. For the spool directory to which this instance writes, the function "own"
// returns the names of the complete audit files, and only these are uploaded. For the directory of a dead instance,
// "own" is nil.
func (c *carrier) deliverRoom(ctx context.Context, r *room, own func() []string) error {
	if err := c.each(ctx, r, policyExtension, c.deliverPolicy); err != nil {
		return err
	}
	if err := c.each(ctx, r, erasureExtension, c.deliverErasure); err != nil {
		return err
	}
	if own == nil {
		return c.each(ctx, r, audit.FileExtension, c.deliverFile)
	}
	for _, name := range own() {
		if err := c.deliverFile(ctx, r, name); err != nil {
			return err
		}
	}
	return nil
}

func (c *carrier) each(ctx context.Context, r *room, extension string, deliver func(context.Context, *room,
	string) error) error {
	names, err := r.names(extension)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, name := range names {
		err = errors.Join(err, deliver(ctx, r, name))
	}
	return err
}

func (c *carrier) deliverPolicy(ctx context.Context, r *room, name string) error {
	return c.move(ctx, r, name, audit.PoliciesPrefix+name)
}

func (c *carrier) deliverErasure(ctx context.Context, r *room, name string) error {
	number := name[:len(name)-len(erasureExtension)]
	if err := c.checkErasure(r.path(name)); err != nil {
		return err
	}
	return c.move(ctx, r, name, audit.ErasedPrefix+r.instance+"-"+number+".json")
}

// checkErasure returns an error if the user ids in an erasure have another kind or key than the ids of the journal.
// An erasure with ids of another kind exists if another service used the same spool directory.
func (c *carrier) checkErasure(path string) error {
	raw, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var e audit.Erasure
	if err := audit.Unseal(raw, &e); err != nil {
		return nil // readers report the damage
	}
	ids, err := e.IDs()
	if err == nil {
		err = ids.Same(c.IDs)
	}
	if err != nil {
		return fmt.Errorf("erasure %s: %w", path, err)
	}
	return nil
}

// The method move stores a document of a spool directory under an object key at the audit location. The method move
// also removes the document from the spool directory.
func (c *carrier) move(ctx context.Context, r *room, name, key string) error {
	body, err := os.ReadFile(r.path(name))
	if err != nil {
		return err
	}
	if err := c.put(ctx, key, body); err != nil {
		return err
	}
	return os.Remove(r.path(name))
}

func (c *carrier) put(ctx context.Context, key string, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, carryTimeout)
	defer cancel()
	if _, err := c.place.Put(ctx, key, body); err != nil {
		return fmt.Errorf("move audit file %s to %s: %w", key, c.To, err)
	}
	return nil
}

// deliverFile stores an audit file and then its index entry at the audit location, and removes the file from the spool
// directory.
func (c *carrier) deliverFile(ctx context.Context, r *room, name string) error {
	file, err := os.ReadFile(r.path(name))
	if errors.Is(err, fs.ErrNotExist) { // another process removed the file
		c.Logger.Error("an audit file disappeared before its upload", "file", r.path(name))
		c.removed(r, name, -1)
		return nil
	}
	if err != nil {
		return err
	}
	size := int64(len(file))
	closed, summary, fault := finish(file, capping.InstantOf(c.Clock()))
	if summary != nil {
		if err := summary.IDs().Same(c.IDs); err != nil { // another service used the same directory
			return fmt.Errorf("audit file %s: %w", r.path(name), err)
		}
	}
	if fault != nil {
		if err := c.setAside(r.path(name), fault); err != nil {
			return err
		}
	}
	if closed != nil && len(closed) != len(file) { // a repeated upload then has the same bytes
		if err := r.store(name, closed); err != nil {
			return err
		}
	}
	if closed != nil {
		if err := c.publish(ctx, closed, summary); err != nil {
			return err
		}
	}
	if err := os.Remove(r.path(name)); err != nil {
		return err
	}
	c.state.uploaded(c.Clock())
	c.removed(r, name, size)
	return nil
}

// The method publish stores a closed audit file, and then its index entry, at the audit location.
func (c *carrier) publish(ctx context.Context, closed []byte, summary *audit.Summary) error {
	entry := summary.Entry(closed)
	index, err := audit.Seal(entry)
	if err != nil {
		return err
	}
	if err := c.put(ctx, entry.Key, closed); err != nil {
		return err
	}
	return c.put(ctx, summary.IndexKey(), index)
}

// setAside gives a damaged audit file in the spool directory a second name, under which operators can inspect the
// damaged file. The carrier ignores the file with the second name.
func (c *carrier) setAside(path string, fault error) error {
	kept := path + damagedExtension
	c.Logger.Error("an audit file is damaged: the records before the damage are uploaded", "file", path,
		"kept", kept, "error", fault)
	if err := os.Link(path, kept); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// The method "removed" notes that an audit file was uploaded, and removes the file from the upload queue.
func (c *carrier) removed(r *room, name string, size int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.files--
	if r != &c.writing.room { // other rooms use the same names of files
		c.waiting.Add(-max(size, 0))
		return
	}
	c.waiting.Add(-c.sizes[name])
	delete(c.sizes, name)
	c.own = slices.DeleteFunc(c.own, func(own string) bool { return own == name })
}
