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

// mostFaults is the largest number of unreadable files that an answer names.
const mostFaults = 5

// Of counts the records of an audit. The policies are those of the audit, except Config.Policy, which also stands for
// policies that the audit lacks. Unreadable files are left out. The answer names both.
func Of(ctx context.Context, a *archive.Archive, cfg Config) (*Result, error) {
	var faults []string
	fault := func(err error) {
		if text := err.Error(); len(faults) < mostFaults && !slices.Contains(faults, text) {
			faults = append(faults, text)
		}
	}
	cfg.Policies = func(version string) (*capping.Policy, error) {
		policy, err := a.Policy(ctx, version)
		if errors.Is(err, archive.ErrNoPolicy) { // the current limits say nearly the same
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

// Latest returns the configuration version and the generation of the latest call before an instant. ok is false if the
// audit has no call before it.
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
