package database

import "context"

// Go runs work in the background, for which Close waits.
func (d *DB) Go(work func()) { d.running.Go(work) }

// Write runs work that writes and waits for it until the deadline of ctx or
// the store's outage.
func (d *DB) Write(ctx context.Context, work func() error) error {
	if err := d.Broken(); err != nil {
		return err
	}
	return d.within(ctx, d.writes, d.down, work)
}

// Read is Write for work that does not write: it still runs when the disk
// has refused a write.
func (d *DB) Read(ctx context.Context, work func() error) error {
	if d.isIsolated.Load() {
		return d.Broken()
	}
	return d.within(ctx, d.reads, d.isolated, work)
}

// within runs work when there is a slot. Work that has begun and that nobody
// waits for any more ends on its own, soon after it sees why.
func (d *DB) within(ctx context.Context, slots chan struct{}, outage <-chan struct{}, work func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case slots <- struct{}{}:
	case <-outage:
		return d.Broken()
	case <-ctx.Done():
		return ctx.Err()
	}
	result := make(chan error, 1)
	d.running.Go(func() {
		defer func() { <-slots }()
		result <- d.Rescue(ctx, work)
	})
	select {
	case err := <-result:
		return err
	case <-outage:
		return d.Broken()
	case <-ctx.Done():
		return ctx.Err()
	}
}
