package ingest

import (
	"context"
	"sync"

	"capper/internal/segments/ingest/format"
)

// A pool is a group of workers that parse blocks of rows for one destination (receiver of rows). The blocks come from
// all files for the pool's destination.
type pool struct {
	work    chan func(*worker)
	wg      sync.WaitGroup
	buffers *sync.Pool // pool of *[]byte, blocks to fill; shared by all destinations
}

// A worker contains the buffers that one goroutine of the pool reuses for each block.
type worker struct {
	sink    sink
	block   *format.Block
	scratch []uint32 // for counting distinct ids
	images  []uint64 // for counting distinct images
}

// startPool starts the workers of a pool. The argument "keep" of startPool is the maximum number of bad rows that a
// worker keeps from one block.
func startPool(workers, keep int, cfg *Config, to destination, buffers *sync.Pool) *pool {
	p := &pool{work: make(chan func(*worker)), buffers: buffers}
	for range workers {
		p.wg.Go(func() {
			sink, names := to.newSink()
			w := &worker{sink: sink, block: format.NewBlock(names, keep)}
			if cfg.Scheme != nil {
				w.block.ReadAs(cfg.Scheme, cfg.Names)
			}
			for do := range p.work {
				do(w)
			}
			sink.flush()
		})
	}
	return p
}

// The method "stop" waits until the workers of the pool have done all work. The caller of the method "stop" must not
// add more work.
func (p *pool) stop() {
	close(p.work)
	p.wg.Wait()
}

// The method "do" passes a function to the workers of the pool, and waits until a worker has accepted the function. The
// WaitGroup in the argument "pending" counts the function until it has returned.
func (p *pool) do(ctx context.Context, pending *sync.WaitGroup, work func(*worker)) error {
	pending.Add(1)
	counted := func(w *worker) {
		defer pending.Done()
		work(w)
	}
	select {
	case p.work <- counted:
		return nil
	case <-ctx.Done():
		pending.Done()
		return ctx.Err()
	}
}
