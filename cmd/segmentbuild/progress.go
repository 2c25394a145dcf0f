package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"capper/internal/console"
)

// progress shows what is under way: bars with rate and time left on a
// terminal, else one line per step when it is done.
type progress struct {
	to   io.Writer
	bars *mpb.Progress // nil when not on a terminal

	mu      sync.Mutex
	what    string // the step under way, empty for none
	since   time.Time
	bar     *mpb.Bar
	done    atomic.Int64 // bytes of this step
	total   atomic.Int64
	stopped bool
}

func newProgress(to *console.Writer) *progress {
	p := &progress{to: to}
	if f, ok := to.Unwrap().(*os.File); ok && isatty.IsTerminal(f.Fd()) {
		p.bars = mpb.New(mpb.WithOutput(f), mpb.WithWidth(40))
	}
	return p
}

// step ends the step before and begins the next.
func (p *progress) step(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.end()
	p.what, p.since = what, time.Now()
	if p.bars != nil {
		p.bar = p.bars.AddBar(0,
			mpb.PrependDecorators(decor.Name(console.Escape(what), decor.WCSyncSpaceR), decor.CountersKibiByte("% .1f / % .1f", decor.WCSyncSpace)),
			mpb.AppendDecorators(decor.AverageSpeed(decor.SizeB1024(0), "% .1f", decor.WCSyncSpace), decor.AverageETA(decor.ET_STYLE_GO, decor.WCSyncSpace)))
	}
}

// end finishes the step under way; the caller holds the lock.
func (p *progress) end() {
	if p.what == "" {
		return
	}
	done, took := p.done.Swap(0), time.Since(p.since)
	p.total.Store(0)
	switch {
	case p.bar != nil:
		p.bar.SetTotal(-1, true)
	case done > 0:
		fmt.Fprintf(p.to, "segmentbuild: %s: %.1f MB in %.1f s, %.0f MB/s\n", p.what, mega(done), took.Seconds(), mega(done)/max(took.Seconds(), 1e-3))
	default:
		fmt.Fprintf(p.to, "segmentbuild: %s: %.1f s\n", p.what, took.Seconds())
	}
	p.what, p.bar = "", nil
}

func mega(n int64) float64 { return float64(n) / 1e6 }

// add counts bytes of the step under way; total is what becomes known of its size.
func (p *progress) add(done, total int64) {
	now := p.done.Add(done)
	sum := p.total.Add(total)
	if p.bars == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar != nil {
		p.bar.SetTotal(sum, false)
		p.bar.SetCurrent(now)
	}
}

// uploaded counts a stored object.
func (p *progress) uploaded(_ string, sizeBytes int64) { p.add(sizeBytes, 0) }

// stop ends the last step; nothing is shown after it.
func (p *progress) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.end()
	if p.bars != nil && !p.stopped {
		p.bars.Wait()
	}
	p.stopped = true
}
