package database

import (
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// The type "begun" lists unfinished tables: table files that Pebble began to write while it opened the database. The
// map value of an unfinished table is true if the file system refused a write to this table. No manifest of the
// database names unfinished tables, so Pebble does not need them. The zero value of the type "begun" is an empty list.
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

// The method "end" removes a table from the list of unfinished tables after Pebble has closed the table, because Pebble
// now uses it. If the file system refused a write to the table, the table stays in the list.
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

// The method "remove" removes the unfinished tables in the list from the disk. An unfinished table that cannot be
// removed does no harm.
func (b *begun) remove(fs vfs.FS) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for name := range b.tables {
		_ = fs.Remove(name)
	}
	b.tables = nil
}
