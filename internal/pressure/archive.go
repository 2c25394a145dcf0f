package pressure

import (
	"context"
	"errors"
	"iter"
	"slices"

	"capper/internal/audit"
	"capper/internal/audit/archive"
	"capper/internal/capping"
)

// The result of a count names at most mostFaults unreadable audit files.
const mostFaults = 5

// The function Of returns the counts of messages per person, from the records of an audit. Of reads the policies of the
// calls from the audit. If the audit lacks a policy, Of uses Config.Policy. Of ignores unreadable audit files. The
// Result names missing policies and unreadable audit files.
func Of(ctx context.Context, a *archive.Archive, cfg Config) (*Result, error) {
	var faults []string
	fault := func(err error) {
		if text := err.Error(); len(faults) < mostFaults && !slices.Contains(faults, text) {
			faults = append(faults, text)
		}
	}
	cfg.Policies = func(version string) (*capping.Policy, error) {
		policy, err := a.Policy(ctx, version)
		if errors.Is(err, archive.ErrNoPolicy) { // the current limits are probably similar
			fault(err)
			return cfg.Policy, nil
		}
		return policy, err
	}
	read := func(from capping.Instant) iter.Seq2[*audit.Record, error] {
		return func(yield func(*audit.Record, error) bool) {
			for r, err := range a.Records(ctx, archive.Query{Since: from, Until: cfg.Until}) {
				var file *archive.FileError
				if errors.As(err, &file) {
					fault(err)
					continue
				}
				if !yield(r, err) {
					return
				}
			}
		}
	}
	result, err := Run(ctx, read, cfg)
	if err == nil {
		result.Faults = faults
	}
	return result, err
}

// The function Latest returns the configuration version and the segments generation of the latest filter call before
// the time "until". If the audit contains no filter call before the time "until", the result "ok" is false.
func Latest(ctx context.Context, a *archive.Archive, until capping.Instant) (config, generation string, ok bool,
	err error) {
	for _, back := range []capping.Instant{1, 7, 31, 400} {
		since := max(0, until-back*capping.Instant((Week/7).Milliseconds()))
		for r, err := range a.Records(ctx, archive.Query{Since: since, Until: until}) {
			var file *archive.FileError
			if errors.As(err, &file) {
				continue
			}
			if err != nil {
				return "", "", false, err
			}
			if r.Kind == audit.Filter {
				config, generation, ok = r.Config, r.Generation, true
			}
		}
		if ok {
			break
		}
	}
	return config, generation, ok, ctx.Err()
}
