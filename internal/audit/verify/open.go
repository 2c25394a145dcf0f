package verify

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"syscall"

	"capper/internal/audit"
	"capper/internal/capping"
	"capper/internal/objects"
)

// The method open checks an audit file that an instance is still writing, up to the last complete record.
func (s *work) open(ctx context.Context, key string, all *series) error {
	const most = 4 << 30
	raw, err := s.archive.Source().Read(ctx, key, most)
	if errors.Is(err, objects.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	summary, err := s.read(ctx, raw, true)
	var torn *audit.TornError
	switch {
	case errors.As(err, &torn): // torn in its header, so the file has no records yet
		return nil
	case err != nil:
		s.find(Finding{Kind: Damage, Key: key, Text: err.Error()})
		return nil
	}
	if place, ok := s.archive.Source().(*objects.Directory); ok &&
		abandoned(filepath.Join(place.Name(), path.Dir(key), audit.LockName)) {
		s.miss(summary.Last(), capping.Never)
	}
	all.addOpen(summary.Entry(raw))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.report.Open++
	return nil
}

// The function "abandoned" reports whether the writer of open audit files has died. If the writer has died, no process
// holds the lock file beside the audit files.
func abandoned(lock string) bool {
	f, err := os.Open(lock)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	defer f.Close() // closing the file releases the lock
	return syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) == nil
}
