package database

import (
	"context"

	"capper/internal/capping"
)

// The method Go runs the function "work" in the background. Close waits for functions that Go has started.
func (d *DB) Go(work func()) { d.running.Go(work) }

// The method Write runs the function "work", which may write to the database. If the context ends or the store goes out
// of service, Write returns without waiting for the function.
func (d *DB) Write(ctx context.Context, work func() error) error {
	if err := d.Broken(); err != nil {
		return err
	}
	return d.within(ctx, d.writes, d.down, work)
}

// The method Read runs the function "work", which only reads the database. Unlike Write, Read also works after the disk
// has refused a write.
func (d *DB) Read(ctx context.Context, work func() error) error {
	if d.isIsolated.Load() {
		return d.Broken()
	}
	return d.within(ctx, d.reads, d.isolated, work)
}

// The method "within" waits until fewer than the maximum number of calls are in progress. It then runs the function
// "work", unless the caller has left. The function "work" must return soon after the context has ended.
func (d *DB) within(ctx context.Context, slots chan struct{}, outage <-chan struct{}, work func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case slots <- struct{}{}:
		if err := capping.CheckCaller(ctx); err != nil {
			<-slots
			return err
		}
	case <-outage:
		return d.Broken()
	case <-capping.CallerOf(ctx).Gone:
		return capping.ErrCallerGone
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
