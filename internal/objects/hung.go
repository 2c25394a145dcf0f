package objects

import (
	"context"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"
)

// The constant grace is the time for which a file operation may continue after the end of its context. On a working
// file system, each operation ends within the time grace, so that it changes no file after the caller has gone on.
const grace = time.Second

// The type "hung" runs file operations that may never return, for example on a network mount whose server is down. A
// caller waits for a file operation until the time grace after the end of the caller's context, at the latest. The zero
// hung is ready to use.
type hung struct {
	mu   sync.Mutex
	busy map[string]chan struct{} // key: path; the channel is closed when the operation on the path ends
}

// The method do runs the function "work", but returns an error if "work" is still running when ctx ended longer ago
// than the time grace. A later call for the same path waits until the function "work" of the earlier call ends. At most
// one abandoned operation per path therefore exists. After an error of ctx, the function "work" may still run, so the
// caller must not read its results.
func (h *hung) do(ctx context.Context, path string, work func() error) error {
	ended := make(chan struct{})
	if err := h.enter(ctx, path, ended); err != nil {
		return err
	}
	result := make(chan error, 1)
	go func() {
		result <- work()
		h.mu.Lock()
		delete(h.busy, path)
		h.mu.Unlock()
		close(ended)
	}()
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-result:
		return err
	case <-time.After(grace):
		return fmt.Errorf("%s: the file system does not respond: %w", path, ctx.Err())
	}
}

// The method enter waits until no other file operation runs on the path.
func (h *hung) enter(ctx context.Context, path string, ended chan struct{}) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		h.mu.Lock()
		before := h.busy[path]
		if before == nil {
			if h.busy == nil {
				h.busy = map[string]chan struct{}{}
			}
			h.busy[path] = ended
		}
		h.mu.Unlock()
		if before == nil {
			return nil
		}
		select {
		case <-before:
		case <-ctx.Done():
			return fmt.Errorf("%s: the file system has not yet answered an earlier call for this file: %w",
				path, ctx.Err())
		}
	}
}

// readRegular reads a regular file of at most limit bytes. The function readRegular rejects other kinds of files, such
// as pipes, because reading a pipe would block. The function readRegular checks the kind of the file before and after
// opening the path.
func readRegular(path string, limit int64) ([]byte, error) {
	stat, err := os.Stat(path)
	if err == nil && !stat.Mode().IsRegular() {
		return nil, fmt.Errorf("read %s: the file must be a regular file", path)
	}
	if err != nil {
		return nil, notFound(path, err)
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, notFound(path, err)
	}
	defer f.Close()
	if stat, err = f.Stat(); err != nil {
		return nil, err
	}
	if !stat.Mode().IsRegular() {
		return nil, fmt.Errorf("read %s: the file must be a regular file", path)
	}
	body, err := readAll(f, stat.Size(), limit)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return body, nil
}
