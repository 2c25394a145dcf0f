package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"capper/client"
	"capper/internal/console"
)

// progress tells how a long call over many users goes: a bar with rate and
// time left on a terminal, a line every few seconds elsewhere.
type progress struct {
	to    io.Writer
	total uint64
	since time.Time
	told  time.Time
	bars  *mpb.Progress // nil when not on a terminal
	bar   *mpb.Bar
	state string // what the bar says beside its numbers
}

// lineEvery is the pause between two lines.
const lineEvery = 5 * time.Second

func newProgress(to *console.Writer, what string, total uint64) *progress {
	p := &progress{to: to, total: total, since: time.Now(), told: time.Now()}
	if f, ok := to.Unwrap().(*os.File); ok && isatty.IsTerminal(f.Fd()) {
		p.bars = mpb.New(mpb.WithOutput(f), mpb.WithWidth(40))
		p.bar = p.bars.AddBar(int64(total),
			mpb.PrependDecorators(decor.Name(what+" "), decor.CountersNoUnit("%d / %d users")),
			mpb.AppendDecorators(decor.AverageSpeed(0, "%.0f/s"), decor.Name(" "), decor.AverageETA(decor.ET_STYLE_GO),
				decor.Any(func(decor.Statistics) string { return " " + p.state })))
	}
	return p
}

// filtered tells the sums so far.
func (p *progress) filtered(s *client.Summary) {
	denied := 0
	for _, n := range s.Denied {
		denied += n
	}
	p.reached(uint64(s.Allowed+denied), fmt.Sprintf("%d allowed, %d denied, %d unavailable", s.Allowed, denied, s.Unavailable))
}

func (p *progress) reached(done uint64, state string) {
	if p.bar != nil {
		p.state = state
		p.bar.SetCurrent(int64(done))
		return
	}
	if time.Since(p.told) < lineEvery {
		return
	}
	p.told = time.Now()
	rate := float64(done) / time.Since(p.since).Seconds()
	left := time.Duration(float64(p.total-done) / max(rate, 1) * float64(time.Second)).Round(time.Second)
	fmt.Fprintf(p.to, "capper: %d of %d users, %.0f/s, %s left: %s\n", done, p.total, rate, left, state)
}

// stop ends the bar, full or not.
func (p *progress) stop() {
	if p.bars != nil {
		p.bar.Abort(false)
		p.bars.Wait()
	}
}
