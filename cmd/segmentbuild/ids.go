package main

import (
	"context"
	"errors"

	"capper/internal/objects"
	"capper/internal/segments"
	"capper/internal/segments/publish"
)

// idsReport describes user ids that are not dense in the reports of commands.
type idsReport struct {
	Kind  string `json:"kind"`
	Check string `json:"check"`
	// IDs is the number of different ids.
	IDs             uint32 `json:"ids"`
	DictionaryBytes int64  `json:"dictionary_bytes"`
}

func newIDsReport(c *publish.Candidate) *idsReport {
	if c.Dictionary == nil {
		return nil
	}
	return &idsReport{Kind: c.Scheme.Kind().String(), Check: c.Scheme.Check(), IDs: c.Dictionary.Len(),
		DictionaryBytes: c.Dictionary.SizeBytes()}
}

// denseAlone returns an error if the ids of a location are not dense.
func denseAlone(ctx context.Context, location objects.Source, operation string) error {
	m, err := segments.ReadLiveManifest(ctx, location)
	if err != nil { // the command reports a fault of the live generation itself
		return ctx.Err()
	}
	return publish.NotYet(m.IDs, operation)
}

// isIDsError reports whether ids of another kind or key are the reason of an error.
func isIDsError(err error) bool {
	var (
		location  *publish.IDsError
		published *segments.IDsError
	)
	return errors.As(err, &location) || errors.As(err, &published)
}
