package database

import (
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// begun are the tables that Pebble began while the database was being opened, and
// neither ended nor removed: by name, whether the file system refused one. A manifest
// names only tables that were ended. The zero value is none.
type begun struct {
	mu     sync.Mutex
	tables map[string]bool
}

func (b *begun) add(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.tables == nil {
		b.tables = map[string]bool{}
	}
	b.tables[name] = false
}

func (b *begun) refuse(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.tables[name]; ok {
		b.tables[name] = true
	}
}

// end is for a table that was closed: Pebble uses it unless it was refused.
func (b *begun) end(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.tables[name] {
		delete(b.tables, name)
	}
}

func (b *begun) forget(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.tables, name)
}

// remove removes the files; that it is refused does no harm.
func (b *begun) remove(fs vfs.FS) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for name := range b.tables {
		_ = fs.Remove(name)
	}
	b.tables = nil
}
