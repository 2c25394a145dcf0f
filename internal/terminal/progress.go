package terminal

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// A Unit is the unit of the numbers in a Progress, such as bytes or users.
type Unit string

// These constants are the units of a Progress: bytes of files, users of an audience, and lines of a text.
const (
	Bytes Unit = "bytes"
	Users Unit = "users"
	Lines Unit = "lines"
)

// A Progress shows the progress of a command with several steps. On a terminal, a Progress draws a bar with the rate
// and the remaining time of the current step. If standard error is not a terminal, a Progress prints lines. A Progress
// is safe for concurrent use.
type Progress struct {
	on   *Streams
	unit Unit
	bars *mpb.Progress // nil: not on a terminal

	done, total atomic.Int64           // numbers of the current step
	state       atomic.Pointer[string] // text after the bar; drawing must not wait for mu

	mu          sync.Mutex
	step        string // name of the current step; "": no step
	since, told time.Time
	bar         *mpb.Bar
	stopped     bool
}

// Without a progress bar, lineEvery is the minimum time between two printed lines about the progress of one step.
const lineEvery = 5 * time.Second

// NewProgress returns a Progress that writes to standard error. The caller must call Stop at the end. While a
// progress bar is visible, the program should not write other text to the terminal.
func NewProgress(on *Streams, unit Unit) *Progress {
	p := &Progress{on: on, unit: unit}
	if to := on.Err.Unwrap(); isTerminal(to) && (unit != Lines || !isTerminal(on.Out.Unwrap())) {
		p.bars = mpb.New(mpb.WithOutput(to), mpb.WithWidth(40))
	}
	return p
}

// The method Step ends the previous step, and begins a step with the given number of units. If the argument "total" is
// 0, the number of units in the step is not yet known.
func (p *Progress) Step(what string, total int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.endStep()
	p.step, p.since, p.told = what, time.Now(), time.Now()
	p.total.Store(total)
	if p.bars != nil {
		p.bar = p.newBar()
	}
}

func (p *Progress) newBar() *mpb.Bar {
	name := decor.Name(Escape(p.step), decor.WCSyncSpaceR)
	if p.unit == Lines && p.total.Load() == 0 { // without a known number of lines, the bar shows no end
		return p.bars.New(0, mpb.NopStyle(), mpb.PrependDecorators(name, decor.CurrentNoUnit("%d lines,"),
			decor.AverageSpeed(0, " %.0f/s"), p.beside()))
	}
	counters := decor.CountersNoUnit("%d / %d "+string(p.unit), decor.WCSyncSpace)
	speed := decor.AverageSpeed(0, "%.0f/s", decor.WCSyncSpace)
	if p.unit == Bytes {
		counters = decor.CountersKibiByte("% .1f / % .1f", decor.WCSyncSpace)
		speed = decor.AverageSpeed(decor.SizeB1024(0), "% .1f", decor.WCSyncSpace)
	}
	return p.bars.AddBar(p.total.Load(),
		mpb.PrependDecorators(name, counters),
		mpb.AppendDecorators(speed, decor.AverageETA(decor.ET_STYLE_GO, decor.WCSyncSpace), p.beside()))
}

// The method "beside" returns a function that draws the text after the numbers of the progress bar.
func (p *Progress) beside() decor.Decorator {
	return decor.Any(func(decor.Statistics) string {
		if state := p.state.Load(); state != nil && *state != "" {
			return " " + Escape(*state)
		}
		return ""
	})
}

// Add increases the number of finished units in the current step, and adds the argument "total" to the number of units
// in the step.
func (p *Progress) Add(done, total int64) {
	now, sum := p.done.Add(done), p.total.Add(total)
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

// The method Reach sets the number of finished units in the current step, and a text about these units. The text
// appears next to the progress bar or, without a bar, in a line every few seconds.
func (p *Progress) Reach(done int64, state string) {
	p.done.Store(done)
	p.state.Store(&state)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar != nil {
		p.bar.SetCurrent(done)
		return
	}
	if time.Since(p.told) < lineEvery {
		return
	}
	p.told = time.Now()
	total, took := p.total.Load(), time.Since(p.since)
	switch {
	case total == 0:
		p.on.Say("%d %s, %s%s", done, p.unit, rateOf(done, took), colon(state))
	case done == 0:
		p.on.Say("0 of %d %s%s", total, p.unit, colon(state))
	default:
		left := time.Duration(float64(total-done) / float64(done) * float64(took)).Round(time.Second)
		p.on.Say("%d of %d %s, %s, %s left%s", done, total, p.unit, rateOf(done, took), left, colon(state))
	}
}

// rateOf returns the rate of n units in the given time, such as 12/s. A slow rate is per minute or per hour.
func rateOf(n int64, took time.Duration) string {
	rate := float64(n) / took.Seconds()
	switch {
	case rate >= 1:
		return fmt.Sprintf("%.0f/s", rate)
	case rate*60 >= 1:
		return fmt.Sprintf("%.0f/m", rate*60)
	}
	return fmt.Sprintf("%.0f/h", rate*3600)
}

// The method Note shows the reason why the current step waits. The reason appears next to the progress bar until the
// step continues. Without a progress bar, Note prints the reason immediately.
func (p *Progress) Note(text string) {
	if p.bars == nil {
		p.on.Say("%s", text)
		return
	}
	p.state.Store(&text)
}

// The function "colon" returns ": " followed by the text, or "" for an empty text.
func colon(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}

// endStep ends the current step. The caller of endStep must hold the lock of the Progress. The method endStep prints a
// final line only for steps that count bytes, because commands print the numbers of users and lines at their end.
func (p *Progress) endStep() {
	if p.step == "" {
		return
	}
	done, took := p.done.Swap(0), time.Since(p.since).Seconds()
	switch {
	case p.bar != nil && done < p.total.Load():
		p.bar.Abort(false) // the bar keeps its last state
	case p.bar != nil:
		p.bar.SetTotal(-1, true)
	case p.unit != Bytes:
	case done > 0:
		p.on.Say("%s: %.1f MB in %.1f s, %.0f MB/s", p.step, mega(done), took, mega(done)/max(took, 1e-3))
	default:
		p.on.Say("%s: %.1f s", p.step, took)
	}
	p.step, p.bar = "", nil
	p.state.Store(nil)
}

func mega(n int64) float64 { return float64(n) / 1e6 }

// Stop ends the current step, even if the step is not finished. After Stop, a Progress shows nothing.
func (p *Progress) Stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.endStep()
	if p.bars != nil && !p.stopped {
		p.bars.Wait()
	}
	p.stopped = true
}
