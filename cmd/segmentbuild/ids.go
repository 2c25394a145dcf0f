package main

import (
	"errors"
	"fmt"
	"slices"

	"capper/internal/segments"
	"capper/internal/segments/ingest"
	"capper/internal/segments/publish"
	"capper/internal/terminal"
)

// idsReport is the part of a command's report about user ids that are not dense (32-bit integers).
type idsReport struct {
	Kind  string `json:"kind"`
	Check string `json:"check"`
	// IDs is the number of distinct ids.
	IDs             uint32 `json:"ids"`
	DictionaryBytes int64  `json:"dictionary_bytes"`
	// NamesBytes is the size in bytes of the BackFile (file with the user ids).
	NamesBytes int64 `json:"names_bytes,omitempty"`
}

func newIDsReport(c *publish.Candidate) *idsReport {
	is := c.IDs()
	if is == nil {
		return nil
	}
	layer := &is.Dictionary[0]
	r := &idsReport{Kind: is.Kind, Check: is.Check, IDs: is.Count, DictionaryBytes: layer.SizeBytes}
	if layer.Back != nil {
		r.NamesBytes = layer.Back.SizeBytes
	}
	return r
}

// noteIDs adds facts and warnings about user ids to the report. The warnings are about nearly equal ids, and about
// different ids with the same image (64-bit number that stands for the id). The argument "published" is the candidate
// (version to publish), which may have more ids than the result of the build.
func (r *buildReport) noteIDs(result *ingest.Result, published *publish.Candidate) {
	r.IDs, r.idWarnings = newIDsReport(published), nil
	if twins := result.Twins; twins.IDs > 0 {
		text := terminal.Count(twins.IDs, "id differs", "ids differ") +
			" from another id only by upper and lower case or by blanks around the id, and such ids are different users"
		if twins.A != "" {
			text += fmt.Sprintf(": %q and %q", twins.A, twins.B)
		}
		r.idWarnings = append(r.idWarnings, text)
	}
	for _, pair := range result.Shared {
		r.idWarnings = append(r.idWarnings, fmt.Sprintf("ids %q and %q have the same image: they share one log and "+
			"one membership", pair.A, pair.B))
	}
	if more := result.SharedCount - int64(len(result.Shared)); more > 0 {
		r.idWarnings = append(r.idWarnings, fmt.Sprintf("%d more pairs of ids have the same image", more))
	}
	r.Warnings = slices.Clone(r.idWarnings)
}

// isIDsError reports whether an error occurred because user ids have a wrong kind or a wrong hash key.
func isIDsError(err error) bool {
	var wrong *segments.IDsError
	return errors.As(err, &wrong)
}
