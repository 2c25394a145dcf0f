package database

import "context"

// Go runs the function in the argument "work" in the background. Close waits until functions that Go has started
// return.
func (d *DB) Go(work func()) { d.running.Go(work) }

// Write runs the function in the argument "work", which may write to the database. If the deadline of ctx passes or the
// store goes out of service, Write returns without waiting for the function in the argument "work".
func (d *DB) Write(ctx context.Context, work func() error) error {
	if err := d.Broken(); err != nil {
		return err
	}
	return d.within(ctx, d.writes, d.down, work)
}

// Read runs the function in the argument "work", which only reads the database. Unlike Write, Read also works while the
// database cannot be written because the disk has refused a write.
func (d *DB) Read(ctx context.Context, work func() error) error {
	if d.isIsolated.Load() {
		return d.Broken()
	}
	return d.within(ctx, d.reads, d.isolated, work)
}

// within runs the function in the argument "work" as soon as the number of calls in progress allows it. If
// the caller has stopped waiting, the function in the argument "work" notices this and returns soon.
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
