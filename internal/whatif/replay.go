package whatif

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"capper/internal/audit"
	"capper/internal/audit/archive"
	"capper/internal/capping"
)

// Replay decides the calls in the records of an audit archive again, and returns the changes of the decisions under the
// alternative policy. Replay begins early enough before cfg.Since, so that every limit finds all sends that it counts.
// If cfg.Policies is nil, Replay uses the policies that the archive contains. Replay skips unreadable audit files. The
// result "faults" of Replay holds the errors of unreadable files, and the notes of the Result name the errors.
func Replay(ctx context.Context, from *archive.Archive, cfg Config) (result *Result, faults []error, err error) {
	if cfg.Policies == nil {
		cfg.Policies = func(version string) (*capping.Policy, error) { return from.Policy(ctx, version) }
	}
	r := &replay{Archive: from}
	longest, err := r.longest(ctx, cfg)
	if err != nil {
		return nil, nil, err
	}
	begin := max(0, cfg.Since-capping.Instant(longest.Milliseconds()))
	if cfg.Since == 0 {
		begin = 0
	}
	result, err = Run(ctx, r.records(ctx, archive.Query{Since: begin, Until: cfg.Until}), cfg)
	if err != nil {
		return nil, r.faults, err
	}
	if cfg.Since > 0 {
		result.Since, result.Warm = cfg.Since.Time(), begin.Time()
	}
	if cfg.Until > 0 {
		result.Until = cfg.Until.Time()
	}
	begins, err := r.begins(ctx, result)
	if knows := begins + capping.Instant(longest.Milliseconds()); err == nil && result.Calls > 0 && begins > begin &&
		knows > cfg.Since {
		result.Notes = append(result.Notes, fmt.Sprintf("results of the first %s after %s, where the audit begins, "+
			"may differ: limits count earlier sends that the audit does not contain",
			days(longest), begins.Time().Format(time.RFC3339)))
	}
	for _, fault := range r.faults {
		result.Notes = append(result.Notes, "not read: "+fault.Error())
	}
	return result, r.faults, err
}

// The function "days" formats a duration of two days or more in days, rounded up.
func days(d time.Duration) string {
	if d < 48*time.Hour {
		return capping.Span(d)
	}
	return fmt.Sprintf("%d days", int((d+24*time.Hour-1)/(24*time.Hour)))
}

// A replay is an audit archive that the replay reads, together with the errors of unreadable audit files.
type replay struct {
	*archive.Archive
	faults []error
}

// The method "begins" returns the time of the first record of the audit, even if the replay did not read that record.
func (r *replay) begins(ctx context.Context, result *Result) (capping.Instant, error) {
	first := capping.InstantOf(result.Begins)
	instances, err := r.Instances(ctx)
	for _, instance := range instances {
		if instance.Files > 0 {
			first = min(first, instance.First)
		}
	}
	return first, err
}

// The method "longest" returns the longest time for which a policy keeps sends: the alternative policy, or any policy
// in the audit.
func (r *replay) longest(ctx context.Context, cfg Config) (longest time.Duration, err error) {
	if cfg.Policy != nil {
		longest = cfg.Policy.Retention(cfg.Widen)
	}
	found, err := r.Source().List(ctx, audit.PoliciesPrefix)
	for _, o := range found {
		version, ok := strings.CutSuffix(strings.TrimPrefix(o.Key, audit.PoliciesPrefix), ".yaml")
		if !ok {
			continue
		}
		// An unreadable policy causes an error later, when a record names the version of this policy.
		if policy, err := r.Policy(ctx, version); err == nil {
			longest = max(longest, policy.Retention(cfg.Widen))
		}
	}
	return longest, err
}

// The method "records" returns an iterator over the readable records of the archive. When the context ends, the
// iterator yields an error and ends.
func (r *replay) records(ctx context.Context, q archive.Query) iter.Seq2[*audit.Record, error] {
	return func(yield func(*audit.Record, error) bool) {
		for record, err := range r.Records(ctx, q) {
			var file *archive.FileError
			if errors.As(err, &file) {
				r.faults = append(r.faults, err)
				continue
			}
			if !yield(record, err) || err != nil {
				return
			}
		}
		if err := ctx.Err(); err != nil {
			yield(nil, err)
		}
	}
}
