package ingest

import (
	"context"
	"sync"

	"capper/internal/segments/ingest/format"
)

// pool is the workers that parse blocks of all files of one destination.
type pool struct {
	work    chan func(*worker)
	wg      sync.WaitGroup
	buffers *sync.Pool // of *[]byte, blocks to fill; of the Reader, as there may be thousands of destinations
}

// worker is what one goroutine of the pool uses again from block to block.
type worker struct {
	sink    sink
	block   *format.Block
	scratch []uint32 // of the count of distinct ids
}

// startPool starts the workers, each of which keeps so many bad rows of a block.
func startPool(workers, keep int, to destination, buffers *sync.Pool) *pool {
	p := &pool{work: make(chan func(*worker)), buffers: buffers}
	for range workers {
		p.wg.Go(func() {
			sink, names := to.newSink()
			w := &worker{sink: sink, block: format.NewBlock(names, keep)}
			for do := range p.work {
				do(w)
			}
			sink.flush()
		})
	}
	return p
}

// stop waits until all work is done; there must come no more.
func (p *pool) stop() {
	close(p.work)
	p.wg.Wait()
}

// do hands work to a worker and waits until one takes it; pending counts it until
// it is done.
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
