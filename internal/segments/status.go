package segments

import (
	"errors"
	"fmt"
	"time"
)

// A Status describes the generation (published version) in use and the last check of the source.
type Status struct {
	Generation string
	CreatedAt  time.Time
	LoadedAt   time.Time
	Origin     string // OriginSource, OriginCache, or empty before Load
	// CheckedAt is the time of the last check of the source, successful or not.
	CheckedAt time.Time
	// BuiltAt is the time of the last complete build, which published a generation or found its result already live. If
	// the source has no record of such a build, BuiltAt is zero.
	BuiltAt time.Time
	// Error is the reason for which the last check failed, or for which Require rejects the generation in use. If there
	// is no such reason, Error is empty. ErrorAt is the time at which the fault in Error began.
	Error   string
	ErrorAt time.Time
	// Refusal describes the reason for which the service rejects the source's live generation. If the service does not
	// reject this generation, Refusal is nil.
	Refusal *Refusal
	// Unjudged lists failed comparisons of guarded sets (sets with a limit on lost users) before the use of the
	// generation, with the reasons.
	Unjudged []string
	// ComparedWith names the earlier generation in the comparison of the guarded sets (sets with a limit on lost
	// users). If there was no comparison, ComparedWith is empty.
	ComparedWith string
	// Pinned lists the generations that stay in memory because API calls have named (pinned) them, sorted by name.
	Pinned []Pinned
}

// Status returns the state of the generation (published version) in use and of the last check of the source.
func (r *Refresher) Status() Status {
	r.mu.Lock()
	status := r.status
	r.mu.Unlock()
	status.Pinned = r.pins.list(r.Current())
	return status
}

// RefusedError reports that the service rejects a generation (published version) of the segments. The reason comes from
// RefresherConfig.Require or RefresherConfig.Guarded, or is another kind or hash key of ids.
type RefusedError struct {
	Generation string
	Err        error // error of Require, of the comparison, or about the ids
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("generation %s is rejected: %s", e.Generation, e.Err)
}

func (e *RefusedError) Unwrap() error { return e.Err }

func isRefused(err error) bool {
	var refused *RefusedError
	return errors.As(err, &refused)
}

// The method "fulfils" returns a RefusedError if the function "require" rejects the generation (published version) of
// the manifest. If "require" is nil, the method "fulfils" accepts every generation.
func (m *Manifest) fulfils(require func(*Manifest) error) error {
	if require == nil {
		return nil
	}
	if err := require(m); err != nil {
		return &RefusedError{m.Generation, err}
	}
	return nil
}

// markOrigin records that the generation (published version) in use is the source's live generation, even if the
// Refresher loaded it from the cache.
func (r *Refresher) markOrigin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status.Origin = OriginSource
}

// logAgain is the time after which the Refresher logs an unchanged fault again.
const logAgain = 5 * time.Minute

// The method "record" stores the result of a check of the source in the metrics, the status and the log. If Require
// rejects the generation (published version) in use, the method "record" treats even a successful check of the source
// as an error.
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

// The method "note" stores the result of a check of the source in the status, and returns the error text of the
// previous check.
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
