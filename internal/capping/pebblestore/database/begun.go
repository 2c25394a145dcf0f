package database

import (
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// begun lists the unfinished tables that Pebble began while it opened the database and has not removed. For each table
// name, the list says whether the file system refused a write. No manifest of the database names an unfinished table.
// The zero begun is an empty list.
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

// end removes a closed table from the list, because Pebble now uses the table. If a write to the table was refused, end
// leaves the table in the list.
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

// remove removes the unfinished tables from the disk. An error while removing a table does no harm.
func (b *begun) remove(fs vfs.FS) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for name := range b.tables {
		_ = fs.Remove(name)
	}
	b.tables = nil
}
