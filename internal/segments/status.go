package segments

import (
	"errors"
	"fmt"
	"time"
)

// Status describes the generation in use and the last look at the source.
type Status struct {
	Generation string
	CreatedAt  time.Time
	LoadedAt   time.Time
	Origin     string // OriginSource, OriginCache, empty before Load
	// CheckedAt is the last time the source was asked, whatever came of it.
	CheckedAt time.Time
	// BuiltAt is when a build last published, or found its segments live
	// already, as far as the source says; zero when it does not.
	BuiltAt time.Time
	// Error is why the last look did not succeed, or why Require refuses the generation
	// in use; empty when neither is so. ErrorAt is when this began.
	Error   string
	ErrorAt time.Time
	// Refusal is the live generation of the source while it is kept out of use; nil: it is not.
	Refusal *Refusal
	// Unjudged says which losses of guarded sets were not compared when the generation
	// came into use, and why.
	Unjudged []string
	// ComparedWith is the generation with whose guarded sets the one in use was compared when
	// it came into use; empty where it was not.
	ComparedWith string
	// Pinned are the generations that are kept because somebody pinned them, by name.
	Pinned []Pinned
}

// Status describes the generation in use and the last look at the source.
func (r *Refresher) Status() Status {
	r.mu.Lock()
	status := r.status
	r.mu.Unlock()
	status.Pinned = r.pins.list(r.Current())
	return status
}

// RefusedError says that RefresherConfig.Require refused a generation.
type RefusedError struct {
	Generation string
	Err        error // what Require said
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("generation %s is rejected: %s", e.Generation, e.Err)
}

func (e *RefusedError) Unwrap() error { return e.Err }

func isRefused(err error) bool {
	var refused *RefusedError
	return errors.As(err, &refused)
}

// fulfils asks require, nil for no requirement, of the generation.
func (m *Manifest) fulfils(require func(*Manifest) error) error {
	if require == nil {
		return nil
	}
	if err := require(m); err != nil {
		return &RefusedError{m.Generation, err}
	}
	return nil
}

// markOrigin notes that the source confirmed a generation that came from the cache.
func (r *Refresher) markOrigin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status.Origin = OriginSource
}

// logAgain is after how long a fault that stays the same is logged once more.
const logAgain = 5 * time.Minute

// record takes down what came of a look at the source. A look that succeeds is told as
// an error all the same while Require refuses the generation in use.
func (r *Refresher) record(result string, err error) {
	r.metrics.refreshes.WithLabelValues(result).Inc()
	says := "segments: refresh failed, the generation in use stays"
	now := r.Current()
	r.mu.Lock()
	r.noteRefusal(err, r.cfg.Clock())
	r.mu.Unlock()
	switch {
	case now == nil:
		says = "segments: refresh failed, and no generation is loaded yet"
	case err == nil:
		err, says = now.manifest.fulfils(r.cfg.Require), "segments: the generation in use is rejected, but no other "+
			"is available"
	}
	before := r.note(err)
	switch at := r.cfg.Clock(); {
	case err != nil && err.Error() == before && at.Sub(r.logged) < logAgain:
	case err != nil:
		r.logged = at
		r.cfg.Logger.Error(says, "source", r.cfg.Source.Name(), "error", err)
	case before != "":
		r.cfg.Logger.Info("segments: the source is readable again", "source", r.cfg.Source.Name())
	}
}

// note puts what came of a look into the status, and returns the error before it.
func (r *Refresher) note(err error) (before string) {
	now := r.cfg.Clock()
	r.mu.Lock()
	defer r.mu.Unlock()
	before = r.status.Error
	r.status.CheckedAt = now
	switch {
	case err == nil:
		r.status.Error, r.status.ErrorAt = "", time.Time{}
	case before == "":
		r.status.Error, r.status.ErrorAt = err.Error(), now
	default:
		r.status.Error = err.Error()
	}
	return before
}
